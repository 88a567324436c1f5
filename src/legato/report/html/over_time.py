"""The chart of token gaps over the run: how many of each length when, and the streams open then."""

from __future__ import annotations

from typing import Any

import numpy as np

from legato.metrics import samples as sample
from legato.metrics.occupancy import NS_PER_S, Occupancy
from legato.metrics.samples import NS_PER_MS, Samples
from legato.recording import Ints
from legato.report.html import axes
from legato.report.html.chart import Chart

TIME_BINS = 120
GAP_BINS = 44
OPEN_POINTS = 400
LOWEST_SHARE = 0.002  # of gaps may be shorter than the axis shows: they are in its lowest row
GAPS_A_POINT = 1500  # of the lines: enough for a p99 in nearly every one


def over_time(itl: Samples, occupied: Occupancy) -> Chart:
    """`itl` must not be empty."""
    start_ns = int(min(itl.at_ns.min(), occupied.opened_ns[0]))
    end_ns = max(int(itl.at_ns.max()), start_ns + 1)
    length_s = (end_ns - start_ns) / NS_PER_S
    x: dict[str, Any] = {
        "type": "quantitative",
        "scale": {"domain": [0, length_s], "nice": False},
        "axis": {"title": "seconds into the run", "grid": False, "tickCount": 12},
    }
    return Chart(
        name="gaps-over-time",
        title="Gaps over time",
        caption=(
            "Colour: how many token gaps of that length ended in each"
            f" {_span(length_s / TIME_BINS)} (log scale). Lines: p50 and p99, where enough gaps lie"
            " beyond them. Below: streams open. A band that rises with the streams is load; marks"
            " far above it are stalls. The lowest row also holds all shorter gaps."
        ),
        spec={
            "vconcat": [
                _gaps(
                    itl,
                    start_ns,
                    end_ns,
                    x | {"axis": x["axis"] | {"title": None, "labels": False}},
                ),
                _open(occupied, start_ns, end_ns, x),
            ],
            "spacing": 10,
        },
    )


def _span(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _gaps(itl: Samples, start_ns: int, end_ns: int, x: dict[str, Any]) -> dict[str, Any]:
    which = _time_bin(itl, start_ns, end_ns, TIME_BINS)
    bin_s = (end_ns - start_ns) / NS_PER_S / TIME_BINS
    low_ms, high_ms = axes.domain_ms(_lowest_ms(itl), float(itl.value_ns[-1]) / NS_PER_MS)
    high_ms *= (high_ms / low_ms) ** 0.04  # so that a p99 at the very top is a line, not an edge
    y = {
        "type": "quantitative",
        "scale": axes.log_scale(low_ms, high_ms),
        "axis": axes.time_axis(low_ms, high_ms, title="token gap"),
    }
    cells = _cells(itl, which, axes.bins(low_ms, high_ms, GAP_BINS), bin_s)
    heat = {
        "data": {"values": cells},
        "mark": {"type": "rect"},
        "encoding": {
            "x": x | {"field": "from_s"},
            "x2": {"field": "to_s"},
            "y": y | {"field": "from"},
            "y2": {"field": "to"},
            "color": {
                "field": "gaps",
                "type": "quantitative",
                "scale": {
                    "type": "log",
                    "range": "ramp",
                    "domain": [1, max(2, *(cell["gaps"] for cell in cells))],
                },
                "legend": {"title": "token gaps", "gradientLength": 140, "tickCount": 4},
            },
            "tooltip": [
                {"field": "from_s", "format": ".3~f", "title": "from (s)"},
                {"field": "from", "format": ".3~r", "title": "gap from (ms)"},
                {"field": "to", "format": ".3~r", "title": "gap to (ms)"},
                {"field": "gaps", "format": ",d", "title": "token gaps"},
            ],
        },
    }
    return {"height": 250, "layer": [heat, *_line_layers(itl, start_ns, end_ns, x, y)]}


def _line_layers(
    itl: Samples, start_ns: int, end_ns: int, x: dict[str, Any], y: dict[str, Any]
) -> list[dict[str, Any]]:
    """p50 and p99, each on a halo and named at its end."""
    points = _quantile_lines(itl, start_ns, end_ns)
    layers: list[dict[str, Any]] = []
    for name, style, dy in (("p50", "ink", 11), ("p99", "tail", -9)):
        line = [point for point in points if point["figure"] == name]
        place = {"x": x | {"field": "at_s"}, "y": y | {"field": "at"}}
        layers += [
            {
                "data": {"values": line},
                "mark": {
                    "type": "line",
                    "style": look,
                    "strokeWidth": width,
                    "interpolate": "step",
                },
                "encoding": place,
            }
            for look, width in (("halo", 4), (style, 1.8))
        ]
        layers += [
            {
                "data": {"values": line[-1:]},
                "mark": {
                    "type": "text",
                    "style": look,
                    "align": "right",
                    "dy": dy,
                    "fontWeight": 600,
                    "strokeWidth": width,
                },
                "encoding": place | {"text": {"field": "figure"}},
            }
            for look, width in (("halo", 4), (style, 0))
        ]
    return layers


def _lowest_ms(itl: Samples) -> float:
    """A handful of tiny gaps must not press all others into the top of the chart."""
    return (sample.quantile(itl, LOWEST_SHARE) or 0.0) / NS_PER_MS


def _time_bin(itl: Samples, start_ns: int, end_ns: int, bins: int) -> Ints:
    return ((itl.at_ns - start_ns) * bins // (end_ns - start_ns)).clip(0, bins - 1)


def _cells(itl: Samples, which: Ints, edges_ms: Any, bin_s: float) -> list[dict[str, Any]]:
    value_ms = np.maximum(itl.value_ns / NS_PER_MS, edges_ms[0])
    level = (np.searchsorted(edges_ms, value_ms, side="right") - 1).clip(0, GAP_BINS - 1)
    counts = np.bincount(
        which * GAP_BINS + level, weights=itl.weight, minlength=TIME_BINS * GAP_BINS
    )
    return [
        {
            "from_s": _short(index // GAP_BINS * bin_s),
            "to_s": _short((index // GAP_BINS + 1) * bin_s),
            "from": _short(edges_ms[index % GAP_BINS]),
            "to": _short(edges_ms[index % GAP_BINS + 1]),
            "gaps": int(counts[index]),
        }
        for index in np.flatnonzero(counts).tolist()
    ]


def _quantile_lines(itl: Samples, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    bins = min(max(itl.n // GAPS_A_POINT, 6), TIME_BINS)
    which = _time_bin(itl, start_ns, end_ns, bins)
    bin_s = (end_ns - start_ns) / NS_PER_S / bins
    # A stable sort keeps the samples of a bin in order of value.
    order = np.argsort(which.astype(np.uint8), kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=bins))])
    points = []
    for index in np.flatnonzero(np.diff(bounds)).tolist():
        part = sample.subset(itl, order[bounds[index] : bounds[index + 1]])
        for name, p in (("p50", 0.5), ("p99", 0.99)):
            value_ns = sample.supported_quantile(part, p)
            if value_ns is not None:
                at_ms = axes.drawn(value_ns / NS_PER_MS)
                points.append(
                    {"figure": name, "at_s": _short((index + 0.5) * bin_s), "at": _short(at_ms)}
                )
    return points


def _open(occupied: Occupancy, start_ns: int, end_ns: int, x: dict[str, Any]) -> dict[str, Any]:
    at_ns = np.linspace(start_ns, end_ns, OPEN_POINTS).astype(np.int64)
    points = [
        {"at_s": _short((at - start_ns) / NS_PER_S), "open": streams}
        for at, streams in zip(at_ns.tolist(), occupied.at(at_ns).tolist(), strict=True)
    ]
    return {
        "height": 60,
        "data": {"values": points},
        "mark": {"type": "area", "style": "typical", "opacity": 0.4, "interpolate": "step-after"},
        "encoding": {
            "x": x | {"field": "at_s"},
            "y": {
                "field": "open",
                "type": "quantitative",
                "axis": {"title": "open", "tickCount": 3, "tickMinStep": 1, "format": ",d"},
            },
            "tooltip": [
                {"field": "at_s", "format": ".3~f", "title": "at (s)"},
                {"field": "open", "title": "streams open"},
            ],
        },
    }


def _short(value: float) -> float:
    """Five digits are more than a screen shows, and half the file."""
    return float(f"{value:.5g}")
