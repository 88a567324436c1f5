"""The chart of all token gaps on a log axis, with what other tools would have printed below it."""

from __future__ import annotations

from typing import Any

import numpy as np

from legato.metrics.samples import NS_PER_MS, Samples
from legato.report.figures import ms
from legato.report.html import axes
from legato.report.html.chart import Chart
from legato.report.lookup import Summary, interval, number
from legato.report.peers import Reading, own_reading, peer_groups

BINS = 110
LOWEST_BAR = 0.7  # the foot of the bars: a log axis has no zero, and one gap must be seen
LABEL_TURNS = 0.85  # of the axis: beyond it a label stands left of its line
QUANTILES = ("p50", "p90", "p99")


def distribution(summary: Summary, itl: Samples) -> Chart:
    """The token gaps, each quantile with its interval, and a row a tool."""
    low_ms, high_ms = axes.domain_ms(*_extent_ms(summary, itl))
    x: dict[str, Any] = {
        "type": "quantitative",
        "scale": axes.log_scale(low_ms, high_ms),
        "axis": axes.time_axis(low_ms, high_ms, title=None),
    }
    return Chart(
        name="itl-distribution",
        title="Token gaps (ITL)",
        caption=(
            "Both axes are logarithmic: the lowest bar is one gap. Lines are legato's percentiles,"
            " bands their 95 % intervals. Below, what each tool would print from these arrivals:"
            " | mean, ● p50, ◆ p99."
            + (
                f" Times below {ms(axes.FLOOR_MS)} stand at the left edge."
                if _has_zero(itl)
                else ""
            )
        ),
        spec={
            "vconcat": [
                _bars(summary, itl, low_ms, high_ms, x),
                _tools(summary, x | {"axis": x["axis"] | {"labels": False, "ticks": False}}),
            ],
            "spacing": 8,
        },
        left_px=136,
    )


def _extent_ms(summary: Summary, itl: Samples) -> tuple[float, float]:
    """Room for the gaps and for every tool's reading."""
    shown = [figure for _, reading in _rows(summary) for figure in reading.figures_ms[:3]]
    known = [figure for figure in shown if figure is not None]
    ends = [float(itl.value_ns[0]) / NS_PER_MS, float(itl.value_ns[-1]) / NS_PER_MS]
    return min([*ends, *known]), max([*ends, *known])


def _has_zero(itl: Samples) -> bool:
    return bool(itl.value_ns[0] < axes.FLOOR_MS * NS_PER_MS)


def _bars(
    summary: Summary, itl: Samples, low_ms: float, high_ms: float, x: dict[str, Any]
) -> dict[str, Any]:
    edges_ms = axes.bins(low_ms, high_ms, BINS)
    value_ms = np.maximum(itl.value_ns / NS_PER_MS, low_ms)
    counts, _ = np.histogram(value_ms, edges_ms, weights=itl.weight)
    most = float(counts.max())
    rows = [
        {"from": float(edges_ms[i]), "to": float(edges_ms[i + 1]), "gaps": int(counts[i])}
        for i in np.flatnonzero(counts)
    ]
    y = {
        "field": "gaps",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [LOWEST_BAR, max(most * 2, 10.0)], "nice": False},
        "axis": {
            "values": [10**power for power in range(len(str(int(most))))],
            "format": ",d",
            "title": "token gaps",
        },
    }
    bars = {
        "data": {"values": rows},
        "mark": {"type": "rect", "style": "typical", "strokeWidth": 0.5},
        "encoding": {
            "x": x | {"field": "from"},
            "x2": {"field": "to"},
            "y": y,
            "y2": {"datum": LOWEST_BAR},
            "tooltip": [
                {"field": "from", "format": ".3~r", "title": "from (ms)"},
                {"field": "to", "format": ".3~r", "title": "to (ms)"},
                {"field": "gaps", "format": ",d", "title": "token gaps"},
            ],
        },
    }
    return {"height": 230, "layer": [bars, *_quantile_layers(summary, x)]}


def _quantile_layers(summary: Summary, x: dict[str, Any]) -> list[dict[str, Any]]:
    lines = []
    for place, name in enumerate(QUANTILES):
        figure_ms, ends_ms = number(summary, "itl_ms", name), interval(summary, "itl_ms", name)
        if figure_ms is None:
            continue
        low_ms, high_ms = ends_ms or (figure_ms, figure_ms)
        lines.append(
            {
                "at": axes.drawn(figure_ms),
                "low": axes.drawn(low_ms),
                "high": axes.drawn(high_ms),
                "label": f"{name} {ms(figure_ms)}",
                # Labels of near quantiles stand on lines of their own.
                "y": 8 + 15 * place,
            }
        )
    data = {"values": lines}
    across: dict[str, Any] = {"y": {"value": 0}, "y2": {"value": "height"}}
    low_ms, high_ms = x["scale"]["domain"]
    near_end = f"datum.at > {low_ms * (high_ms / low_ms) ** LABEL_TURNS}"
    label: dict[str, Any] = {
        "text": {"field": "label"},
        "y": {"field": "y", "type": "quantitative", "scale": None},
    }
    return [
        {
            "data": data,
            "mark": {"type": "rect", "style": "tail", "opacity": 0.14, "strokeWidth": 0},
            "encoding": across | {"x": x | {"field": "low"}, "x2": {"field": "high"}},
        },
        {
            "data": data,
            "mark": {"type": "rule", "style": "tail", "strokeWidth": 1.5},
            "encoding": across | {"x": x | {"field": "at"}},
        },
        *(
            {
                "data": data,
                "transform": [{"filter": condition}],
                "mark": {
                    "type": "text",
                    "style": style,
                    "align": align,
                    "dx": dx,
                    "fontWeight": 600,
                    "strokeWidth": width,
                },
                "encoding": label | {"x": x | {"field": "at"}},
            }
            for style, width in (("halo", 4), ("ink", 0))
            for condition, align, dx in (
                (f"!({near_end})", "left", 5),
                (near_end, "right", -5),
            )
        ),
    ]


def _rows(summary: Summary) -> list[tuple[str, Reading]]:
    """A row a tool; tools that agree stand next to each other."""
    theirs = [
        row
        for group in peer_groups(summary)
        for row in zip(group.names, group.readings, strict=True)
    ]
    return [("legato", own_reading(summary)), *theirs]


def _tools(summary: Summary, x: dict[str, Any]) -> dict[str, Any]:
    rows = _rows(summary)
    points = [
        {"tool": tool, "figure": name, "at": axes.drawn(figure_ms), "printed": ms(figure_ms)}
        for tool, reading in rows
        for name, figure_ms in zip(("mean", "p50", "p99"), reading.figures_ms, strict=False)
        if figure_ms is not None
    ]
    encoding = {
        "x": x | {"field": "at"},
        "y": {
            "field": "tool",
            "type": "nominal",
            "sort": [tool for tool, _ in rows],
            "axis": {"title": None, "grid": True, "ticks": False, "domain": False},
        },
        "tooltip": [{"field": field} for field in ("tool", "figure", "printed")],
    }
    marks = (
        ("mean", {"type": "tick", "thickness": 2, "size": 11, "opacity": 1}),
        ("p50", {"type": "point", "filled": True, "size": 55, "opacity": 1}),
        ("p99", {"type": "point", "filled": True, "size": 65, "shape": "diamond", "opacity": 1}),
    )
    return {
        "height": {"step": 17},
        "data": {"values": points},
        "encoding": encoding,
        "layer": [
            {
                "transform": [
                    {"filter": f"datum.figure == '{name}' && (datum.tool == 'legato') == {own}"}
                ],
                "mark": mark | {"style": "tail" if own == "true" else "other"},
            }
            for name, mark in marks
            for own in ("false", "true")
        ],
    }
