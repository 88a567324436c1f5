"""Figures as people read them: three significant digits, the unit beside them.

Formats only; it must never round a bound ("at most") downwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

UNKNOWN = "–"
_DIGITS = 3
_FEWEST_MS_IN_S = 100  # a shorter time beside one of seconds keeps both in ms
_FINEST = 0.001  # nothing is claimed below a microsecond, nor below this share of a unit
# (from this many ms on, ms in one unit, its name)
_UNITS = ((999.5, 1000.0, "s"), (0.0995, 1.0, "ms"), (0.0, 0.001, "µs"))


def significant(number: float) -> str:
    """Three significant digits, never an exponent; thousands are separated."""
    if number == 0:
        return "0"
    rounded = float(f"{number:.{_DIGITS - 1}e}")
    decimals = _DIGITS - 1 - math.floor(math.log10(abs(rounded)))
    if decimals > 6:
        return "0"
    return f"{rounded:,.{max(0, decimals)}f}"


def ms(time_ms: float | None) -> str:
    """A time with its unit: µs, ms or s, whichever keeps the figure short."""
    if time_ms is None:
        return UNKNOWN
    size, name = unit_of(time_ms)
    return f"{significant(time_ms / size)} {name}"


def unit_of(time_ms: float) -> tuple[float, str]:
    """(ms in one unit, the unit's name) that suit a time; zero is in ms."""
    if time_ms == 0:
        return 1.0, "ms"
    return next((size, name) for least, size, name in _UNITS if abs(time_ms) >= least)


def at_most_ms(time_ms: float) -> str:
    """An upper bound in ms, rounded up to two significant digits, or to a microsecond."""
    time_ms = max(time_ms, 0.001)
    step = 10.0 ** (math.floor(math.log10(time_ms)) - 1)
    # 0.02 / 0.001 is a hair over 20: without the tolerance it would round up to 0.021.
    bound = math.ceil(time_ms / step - 1e-9) * step
    decimals = max(0, 1 - math.floor(math.log10(bound * (1 + 1e-9))))
    digits = f"{bound:,.{decimals}f}"
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} ms"


def in_one_unit(times_ms: Sequence[float]) -> list[str]:
    """Times that stand on one line, all in the unit that suits most sizes among them."""
    sizes_ms = [abs(time_ms) for time_ms in times_ms if time_ms]
    size, name = unit_of(max(sizes_ms, default=0.0))
    if name == "s" and min(sizes_ms) < _FEWEST_MS_IN_S:
        size, name = 1.0, "ms"
    return [f"{significant(time_ms / size)} {name}" for time_ms in times_ms]


def between(low_ms: float, high_ms: float) -> str:
    """`28.6–30.0 ms`, or one figure where both ends read alike."""
    low, high = in_one_unit([low_ms, high_ms])
    return ms(high_ms) if low == high else f"{low.partition(' ')[0]}–{high}"


def within(low_ms: float, high_ms: float, around_ms: float, error_ms: float = 0.0) -> str:
    """An interval in the unit of the figure it belongs to, no narrower than the figure's own
    error; `±` where its ends look alike, and nothing where it has no width."""
    if low_ms == high_ms:
        return ""
    reach_ms = max(error_ms, _FINEST)
    low_ms = max(0.0, min(low_ms, around_ms - reach_ms))
    high_ms = max(high_ms, around_ms + reach_ms)
    size, name = unit_of(around_ms)
    low, high = significant(low_ms / size), significant(high_ms / size)
    if low != high:
        return f"{low}–{high}"
    reach = max(_FINEST, (high_ms - around_ms) / size, (around_ms - low_ms) / size)
    return f"±{_one_digit_up(reach)} {name}"


def _one_digit_up(number: float) -> str:
    step = 10.0 ** math.floor(math.log10(number) + 1e-9)
    rounded = math.ceil(number / step - 1e-6) * step
    return f"{rounded:.{max(0, -math.floor(math.log10(rounded) + 1e-9))}f}"


def percent(share: float) -> str:
    """A share as a percentage; a share that is not nothing never reads as 0 %."""
    if share == 0:
        return "0 %"
    if abs(share) < 0.0001:
        return "<0.01 %"
    if share < 1 and share > 0.9995:
        return ">99.9 %"
    digits = significant(share * 100)
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} %"


def whole(amount: float) -> str:
    return f"{round(amount):,}"


def of(count: int, noun: str) -> str:
    """`1 stall`, `3 stalls`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
