"""Each chart as an SVG or PNG file, drawn by vl-convert: Vega-Lite without a browser."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

from legato.errors import UsageError
from legato.metrics.summary import measure
from legato.recording import Recording
from legato.report.html.chart import LIGHT, Chart, config
from legato.report.html.document import charts
from legato.report.html.roll import roll
from legato.report.html.roll_chart import roll_chart
from legato.report.lookup import Summary

WIDTH_PX = 960
PNG_SCALE = 2.0
VEGA_LITE_VERSION = "6.4"  # of the bundled one; vl-convert carries several


def write_charts(
    recording: Recording, summary: Summary, folder: Path, file_format: str
) -> list[Path]:
    """Write `NAME.svg` or `NAME.png` for each chart; returns the paths."""
    converter = _converter()
    still = roll_chart(roll(recording, measure(recording)))
    drawn = [*charts(recording, summary), *([still] if still else [])]
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for chart in drawn:
            path = folder / f"{chart.name}.{file_format}"
            path.write_bytes(_image(converter, chart, file_format))
            written.append(path)
    except OSError as error:
        raise UsageError(f"cannot write charts into {folder}: {error.strerror}") from error
    return written


def _converter() -> ModuleType:
    try:
        return import_module("vl_convert")
    except ImportError:
        raise UsageError(
            "--charts needs vl-convert-python, which is not installed: pip install 'legato[charts]'"
        ) from None


def _image(converter: ModuleType, chart: Chart, file_format: str) -> bytes:
    spec = json.dumps(chart.sized(WIDTH_PX) | {"title": chart.title, "padding": 12})
    options = {"config": config(LIGHT), "vl_version": VEGA_LITE_VERSION}
    if file_format == "svg":
        drawn: str = converter.vegalite_to_svg(spec, **options)
        return drawn.encode()
    image: bytes = converter.vegalite_to_png(spec, scale=PNG_SCALE, **options)
    return image
