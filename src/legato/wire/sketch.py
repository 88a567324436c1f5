"""Counts of durations in logarithmic bins: enough for the live view, cheap enough for the hot
path, and sketches of several workers add."""

from __future__ import annotations

import struct
from collections.abc import Sequence

# Eight bins an octave of nanoseconds: a quantile read from them is within 7 % of the true one.
BINS = 8 * 64
_FORMAT = struct.Struct(f"={BINS}Q")
BYTES = _FORMAT.size


def bin_of(duration_ns: int) -> int:
    """The bin of a duration; everything below 16 ns, or negative, falls into the first."""
    if duration_ns < 16:
        return 0
    octave = duration_ns.bit_length()
    return octave << 3 | (duration_ns >> (octave - 4)) & 7


def middle_ns(index: int) -> float:
    """The middle of a bin."""
    octave, part = index >> 3, index & 7
    return (8 + part + 0.5) * 2.0 ** (octave - 4) if octave >= 4 else 8.0


class Sketch:
    __slots__ = ("counts",)

    def __init__(self, counts: Sequence[int] | None = None) -> None:
        self.counts = list(counts) if counts is not None else [0] * BINS

    def add(self, other: Sketch) -> None:
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]

    def quantile_ns(self, q: float) -> float | None:
        total = sum(self.counts)
        if not total:
            return None
        target = q * total
        seen = 0
        for index, count in enumerate(self.counts):
            seen += count
            if count and seen >= target:
                return middle_ns(index)
        return None

    def pack_into(self, buffer: memoryview, offset: int) -> None:
        _FORMAT.pack_into(buffer, offset, *self.counts)

    @classmethod
    def unpack_from(cls, buffer: memoryview, offset: int) -> Sketch:
        return cls(_FORMAT.unpack_from(buffer, offset))
