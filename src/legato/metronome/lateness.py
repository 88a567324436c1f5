"""How late the metronome's own writes were, counted in fixed space."""

from __future__ import annotations

_SHIFT = 10  # bins of 1.024 µs
_BINS = 1 << 17  # up to 134 ms; what is later counts in the last bin, and in `worst_ns`


class Lateness:
    """A histogram of clock before the write − deadline."""

    __slots__ = ("_counts", "worst_ns")

    def __init__(self) -> None:
        self._counts = [0] * _BINS
        self.worst_ns = 0

    def add(self, late_ns: int) -> None:
        at = late_ns >> _SHIFT
        self._counts[at if at < _BINS else -1] += 1
        if late_ns > self.worst_ns:
            self.worst_ns = late_ns

    def quantile_us(self, share: float) -> float | None:
        """The upper edge of the bin that holds the quantile; None before the first write."""
        total = sum(self._counts)
        if not total:
            return None
        beyond = total * (1 - share)
        seen = total
        for at, count in enumerate(self._counts):
            seen -= count
            if seen <= beyond:
                edge_ns = min((at + 1) << _SHIFT, self.worst_ns)
                return (self.worst_ns if at == _BINS - 1 else edge_ns) / 1000
        return self.worst_ns / 1000

    def summary(self) -> dict[str, float | None]:
        return {
            "p50": self.quantile_us(0.5),
            "p99": self.quantile_us(0.99),
            "max": self.worst_ns / 1000,
        }
