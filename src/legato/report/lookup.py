"""Read a summary whose values may be null or missing anywhere.

Nothing here computes or formats; a value of the wrong shape reads as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Summary = Mapping[str, Any]


def value(summary: Summary, *path: str) -> Any:
    """What lies at `path`; None where any part of the path is null or missing."""
    here: Any = summary
    for key in path:
        if not isinstance(here, Mapping):
            return None
        here = here.get(key)
    return here


def number(summary: Summary, *path: str) -> float | None:
    """The finite number at `path`."""
    return finite(value(summary, *path))


def finite(found: Any) -> float | None:
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return float(found) if math.isfinite(found) else None


def count(summary: Summary, *path: str) -> int:
    """The number at `path` as a count; unknown counts as none."""
    found = number(summary, *path)
    return 0 if found is None else int(found)


def text(summary: Summary, *path: str) -> str | None:
    """The string at `path`; an empty one is unknown."""
    found = value(summary, *path)
    return found if isinstance(found, str) and found else None


def items(summary: Summary, *path: str) -> list[Any]:
    found = value(summary, *path)
    return list(found) if isinstance(found, (list, tuple)) else []


def interval(summary: Summary, metric: str, quantile: str) -> tuple[float, float] | None:
    """The 95 % confidence interval of a quantile."""
    ends = [finite(end) for end in items(summary, metric, "ci95", quantile)]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return ends[0], ends[1]


def recordings(summary: Summary) -> list[str]:
    """The files the summary is of: `run.recording` is a path or a list of them."""
    one = text(summary, "run", "recording")
    return [one] if one else [p for p in items(summary, "run", "recording") if isinstance(p, str)]


def setting(summary: Summary, name: str) -> Any:
    """A setting of the run."""
    return value(summary, "run", "settings", name)
