"""What one tool would print, in the form of the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from legato.metrics.dialects.statistics import NS_PER_S, Table
from legato.recording import Ints

Reading = dict[str, Any]


def reading(
    tables: Mapping[str, Table], *, why: str | None = None, output_tps: float | None = None
) -> Reading:
    """Tables without figures are left out; `why` marks the reading as approximate."""
    figures: Reading = {name: table for name, table in tables.items() if table}
    if output_tps is not None:
        figures["output_tps"] = output_tps
    figures["approximate"] = why is not None
    if why is not None:
        figures["why"] = why
    return figures


def per_second(tokens: Ints, span_ns: int) -> float | None:
    return float(tokens.sum()) * NS_PER_S / span_ns if span_ns > 0 else None
