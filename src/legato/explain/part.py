"""A part of the mean gap: how much of it goes with one cause, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

STEP = "step"
POSITION = "position"
CONTEXT = "context"
IN_FLIGHT = "in_flight"
STARTS = "starts"
CHUNK_TOKENS = "chunk_tokens"
BURSTS = "bursts"
RETRANSMITS = "retransmits"
CLIENT = "client"
STALLS = "stalls"
UNEXPLAINED = "unexplained"

FITTED = (STEP, POSITION, CONTEXT, IN_FLIGHT, STARTS, CHUNK_TOKENS)
# In the order they are shown.
CAUSES = (*FITTED, BURSTS, RETRANSMITS, CLIENT, STALLS, UNEXPLAINED)


@dataclass(frozen=True, slots=True)
class Part:
    """What goes with one cause, in ns per token; none where the recording cannot tell."""

    cause: str
    mean_ns: float | None = None
    half_width_ns: float | None = None  # of the 95 % interval; none with too few streams
    units: float | None = None  # how much of the cause a token met on average
    tail_share: float | None = None  # of what the slowest gaps are longer than the mean gap

    @property
    def interval_ns(self) -> tuple[float, float] | None:
        if self.mean_ns is None or self.half_width_ns is None:
            return None
        return self.mean_ns - self.half_width_ns, self.mean_ns + self.half_width_ns

    @property
    def effect_ns(self) -> float | None:
        """The cost of one unit of the cause: a token of position, a stream, a start."""
        if self.mean_ns is None or not self.units:
            return None
        return self.mean_ns / self.units

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return (
            self.mean_ns is not None
            and self.half_width_ns is not None
            and abs(self.mean_ns) > self.half_width_ns
        )
