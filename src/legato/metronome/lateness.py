"""How late the metronome's own writes were, counted in bounded space."""

from __future__ import annotations

from collections import defaultdict

_SHIFT = 10  # bins of 1.024 µs
_LAST_BIN = 1 << 17  # 134 ms; what is later than that counts here, and in `worst_ns`


class Lateness:
    """A histogram of clock before the write − deadline."""

    __slots__ = ("_counts", "worst_ns")

    def __init__(self) -> None:
        self._counts: defaultdict[int, int] = defaultdict(int)
        self.worst_ns = 0

    def add(self, late_ns: int) -> None:
        at = late_ns >> _SHIFT
        self._counts[min(at, _LAST_BIN)] += 1
        if late_ns > self.worst_ns:
            self.worst_ns = late_ns

    def quantile_us(self, share: float) -> float | None:
        """The upper edge of the bin that holds the quantile; None before the first write."""
        needed = share * sum(self._counts.values())
        for at in sorted(self._counts):
            needed -= self._counts[at]
            if needed <= 0 and at < _LAST_BIN:
                return min((at + 1) << _SHIFT, self.worst_ns) / 1000
        return self.worst_ns / 1000 if self._counts else None

    def summary(self) -> dict[str, float | None]:
        return {
            "p50": self.quantile_us(0.5),
            "p99": self.quantile_us(0.99),
            "max": self.worst_ns / 1000 if self._counts else None,
        }
