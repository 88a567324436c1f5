"""Log axes of time: where they run, where their ticks stand, how they are labelled.

What is shorter than the floor is drawn at the floor: a log axis has no zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from legato.metrics.gaps import Floats

FLOOR_MS = 0.01
MIN_RATIO = 1.25  # narrower data is shown with room around it

# A time in the unit that keeps it short, as `figures.ms` writes it.
TIME_LABEL = (
    "datum.value < 0.0995 ? format(datum.value * 1000, '~r') + ' µs'"
    " : datum.value < 999.5 ? format(datum.value, '~r') + ' ms'"
    " : format(datum.value / 1000, '~r') + ' s'"
)


def drawn(value_ms: float) -> float:
    """Where a time stands on a log axis."""
    return max(value_ms, FLOOR_MS)


def domain_ms(low_ms: float, high_ms: float) -> tuple[float, float]:
    """The ends of a log axis that holds both times with a little room."""
    low, high = drawn(low_ms), drawn(max(low_ms, high_ms))
    if high < low * MIN_RATIO:
        middle = math.sqrt(low * high)
        return middle / math.sqrt(MIN_RATIO), middle * math.sqrt(MIN_RATIO)
    room = (high / low) ** 0.02
    return (low if low == FLOOR_MS else low / room), high * room


def bins(low: float, high: float, count: int) -> Floats:
    """Edges of log-spaced bins."""
    return np.asarray(np.geomspace(low, high, count + 1), dtype=np.float64)


def ticks(low: float, high: float, most: int = 9) -> list[float]:
    """Round values between two ends: 1-2-5 in each decade, fewer over many decades, evenly
    spaced below one decade."""
    if high / low < 8:
        return _even_ticks(low, high, most)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [float(f"{step}e{decade}") for decade in decades for step in steps]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) <= most:
            break
    return found


def time_axis(low_ms: float, high_ms: float, **settings: Any) -> dict[str, Any]:
    """A Vega-Lite axis of time."""
    return {"values": ticks(low_ms, high_ms), "labelExpr": TIME_LABEL, **settings}


def log_scale(low: float, high: float) -> dict[str, Any]:
    return {"type": "log", "domain": [low, high], "nice": False}


def _even_ticks(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]
