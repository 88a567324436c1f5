"""A value with its 95 % interval, what arithmetic it allows, and how it is written: value and ends
with the same decimals, as many as the interval's width makes worth reading."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

_MOST_DECIMALS = 6
_LEAST = 1e-9  # what is smaller is nothing in any unit that is printed


@dataclass(frozen=True, slots=True)
class Span:
    """The ends are none where nothing tells them."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def known(self) -> bool:
        ends = (self.low, self.high)
        return all(end is not None and math.isfinite(end) for end in ends)

    def through(self, function: Callable[[float], float]) -> Span:
        """The span of a function that rises or falls throughout."""
        if self.low is None or self.high is None:
            return Span(function(self.value))
        return Span(function(self.value), *sorted((function(self.low), function(self.high))))


def as_percent(ratio: Span) -> Span:
    """How far a ratio is from one."""
    return ratio.through(lambda end: (end - 1) * 100)


def away(span: Span) -> Span:
    """The span turned so that its value is not negative."""
    return span if span.value >= 0 else span.through(lambda end: -end)


def text(span: Span, unit: str = "", *, sign: bool = False) -> str:
    """`71 % [68, 74]`; with a sign `+0.30 [−0.52, 1.08]`."""
    decimals = _decimals(span)
    value = _number(span.value, decimals)
    plus = "+" if sign and span.value > 0 and float(value.replace(",", "")) > 0 else ""
    said = f"{plus}{value}{' ' + unit if unit else ''}"
    if span.low is None or span.high is None or not span.known:
        return said
    return f"{said} [{_number(span.low, decimals)}, {_number(span.high, decimals)}]"


def _decimals(span: Span) -> int:
    """Of the half-width one digit, or two where the first is small; of the value at most three
    significant digits."""
    of_value = 2 - _magnitude(span.value) if span.value else 2
    if span.low is None or span.high is None or not span.known or span.low == span.high:
        return min(max(of_value, 0), _MOST_DECIMALS)
    half = (span.high - span.low) / 2
    place = _magnitude(half)
    of_width = (1 if half / 10**place < 3 else 0) - place
    return min(max(min(of_width, max(of_value, of_width - 1)), 0), _MOST_DECIMALS)


def _magnitude(number: float) -> int:
    return math.floor(math.log10(max(abs(number), _LEAST)))


def _number(number: float, decimals: int) -> str:
    written = f"{number:,.{decimals}f}".replace("-", "−")
    return written.removeprefix("−") if not any(c in "123456789" for c in written) else written
