"""The charts of ITL against position in the answer, context length and streams open."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from legato.report.html import axes
from legato.report.html.chart import Chart
from legato.report.lookup import Summary, items, number

KINDS = (
    (
        "by_position",
        "itl-position",
        "ITL against position",
        "token of the answer",
        "Rising: each token costs more as the answer grows.",
    ),
    (
        "by_context",
        "itl-context",
        "ITL against context",
        "prompt and answer tokens so far",
        "Rising: the KV cache that each step reads grows.",
    ),
    (
        "by_in_flight",
        "itl-concurrency",
        "ITL against concurrency",
        "streams open when the gap ended",
        "Rising: streams share the machine that decodes them.",
    ),
)
LOWEST_MARGIN, HIGHEST_MARGIN = 0.8, 1.25


def against(summary: Summary) -> list[Chart]:
    """A chart for each of the three that the recording tells something of, on one scale."""
    found = {key: _rows(summary, key) for key, *_ in KINDS}
    values_ms = [point["at"] for points in found.values() for point in points]
    if not values_ms:
        return []
    range_ms = axes.domain_ms(min(values_ms), max(values_ms))
    charts = []
    for key, name, title, axis, meaning in KINDS:
        if found[key]:
            single = "" if len(items(summary, key)) > 1 else " This recording holds one bin only."
            caption = f"● p50, ◆ p99 of each bin. {meaning}{single}"
            charts.append(Chart(name, title, caption, _spec(found[key], axis, range_ms)))
    return charts


def _rows(summary: Summary, key: str) -> list[dict[str, Any]]:
    rows = [row for row in items(summary, key) if isinstance(row, Mapping)]
    return [point for row in rows for point in _points(row)]


def _points(row: Summary) -> list[dict[str, Any]]:
    low, high = number(row, "from"), number(row, "to")
    if low is None or high is None:
        return []
    last = max(low, high - 1)
    bin_name = f"{low:,.0f}" if last == low else f"{low:,.0f} to {last:,.0f}"
    return [
        {
            "figure": name,
            "bin": bin_name,
            "x": math.sqrt(low * last),
            "at": axes.drawn(figure_ms),
            "n": number(row, "n"),
        }
        for name in ("p50", "p99")
        if (figure_ms := number(row, name)) is not None
    ]


def _spec(points: list[dict[str, Any]], axis: str, range_ms: tuple[float, float]) -> dict[str, Any]:
    keys = [point["x"] for point in points]
    low_ms, high_ms = range_ms
    left, right = min(keys) * LOWEST_MARGIN, max(keys) * HIGHEST_MARGIN
    encoding = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "scale": axes.log_scale(left, right),
            "axis": {
                "title": axis,
                "values": _counts(left, right),
                "format": ",d",
                "grid": False,
            },
        },
        "y": {
            "field": "at",
            "type": "quantitative",
            "scale": axes.log_scale(low_ms, high_ms),
            "axis": axes.time_axis(low_ms, high_ms, title="token gap"),
        },
        "tooltip": [
            {"field": "bin", "title": axis},
            {"field": "figure"},
            {"field": "at", "format": ".3~r", "title": "ms"},
            {"field": "n", "format": ",d", "title": "token gaps"},
        ],
    }
    return {
        "height": 200,
        "data": {"values": points},
        "encoding": encoding,
        "layer": [
            {
                "transform": [{"filter": f"datum.figure == '{name}'"}],
                "mark": {"type": kind, "style": style, **look},
            }
            for name, colour, shape in (("p50", "typical", "circle"), ("p99", "tail", "diamond"))
            for kind, style, look in (
                ("line", colour, {"strokeWidth": 2}),
                ("point", colour, {"filled": True, "size": 60, "shape": shape, "opacity": 1}),
            )
        ],
    }


def _counts(low: float, high: float) -> list[float]:
    """Ticks of an axis that counts: whole numbers only."""
    found = [tick for tick in axes.ticks(low, high, most=8) if tick == int(tick)]
    return found or [float(round(math.sqrt(low * high)))]
