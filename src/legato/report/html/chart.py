"""A chart: a Vega-Lite specification with the words around it, and the colours of both themes.

The same specification is drawn by the page and written as PNG or SVG; only sizes and theme vary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA_URL = "https://vega.github.io/schema/vega-lite/v6.json"
LEFT_PX = 66  # room for the axis of a chart, beside its plotting area
RIGHT_PX = 14

FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Chart:
    """`name` is the file name of its image; `caption` says how to read it."""

    name: str
    title: str
    caption: str
    spec: Mapping[str, Any]
    left_px: int = LEFT_PX

    def sized(self, width_px: int) -> dict[str, Any]:
        """The specification with its plotting areas as wide as fits."""
        inner_px = width_px - self.left_px - RIGHT_PX
        spec = {"$schema": SCHEMA_URL, "description": f"{self.title}. {self.caption}", **self.spec}
        if "vconcat" in spec:
            return spec | {"vconcat": [part | {"width": inner_px} for part in spec["vconcat"]]}
        return spec | {"width": inner_px}


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by their part; each pair of neighbours differs in lightness, not only in hue."""

    ink: str
    muted: str
    grid: str
    paper: str
    typical: str  # medians, and most of the data
    tail: str  # p99
    stall: str
    ramp: tuple[str, ...]  # few to many


LIGHT = Theme(
    ink="#1c2127",
    muted="#57606a",
    grid="#e3e7ec",
    paper="#ffffff",
    typical="#1f6fb4",
    tail="#b35900",
    stall="#d0202e",
    ramp=("#dcebf7", "#9cc6e8", "#4a94cf", "#1a5f9e", "#0a3560"),
)
DARK = Theme(
    ink="#e6e9ee",
    muted="#9aa5b1",
    grid="#2c333c",
    paper="#14181d",
    typical="#62aeea",
    tail="#f2a154",
    stall="#ff6b70",
    ramp=("#1c3348", "#27577f", "#3f87bf", "#86bfea", "#e2f1fd"),
)


def config(theme: Theme) -> dict[str, Any]:
    """Vega-Lite's `config`. Marks name a style, never a colour: one chart, two themes."""
    return {
        "background": theme.paper,
        "font": FONT,
        "view": {"stroke": None},
        "title": {"anchor": "start", "color": theme.ink},
        "axis": {
            "domainColor": theme.muted,
            "gridColor": theme.grid,
            "tickColor": theme.muted,
            "labelColor": theme.muted,
            "titleColor": theme.muted,
            "titleFontWeight": "normal",
            "labelFontSize": 11,
            "titleFontSize": 11,
            "labelOverlap": True,
            "labelFlush": True,
        },
        "legend": {
            "labelColor": theme.muted,
            "titleColor": theme.muted,
            "titleFontWeight": "normal",
            "orient": "top",
            "direction": "horizontal",
            "titleOrient": "left",
            "titleLimit": 300,
            "gradientThickness": 9,
            "offset": 6,
        },
        "text": {"fontSize": 11},
        "range": {"ramp": list(theme.ramp), "heatmap": list(theme.ramp)},
        "style": {
            "ink": {"color": theme.ink},
            "typical": {"color": theme.typical},
            "tail": {"color": theme.tail},
            "other": {"color": theme.muted},
            "stall": {"color": theme.stall},
            "extent": {"color": theme.ramp[0]},
            # Under a line or a word, to set it off from what it crosses.
            "halo": {"color": theme.paper, "stroke": theme.paper},
        },
    }
