"""The page as one file: sections, charts, the piano roll, and the scripts that draw them.

It loads nothing. The content security policy in its head lets only the scripts it was made with
run, by their hashes, and lets none of them reach a network.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import legato
from legato.errors import UsageError
from legato.metrics import samples
from legato.metrics.occupancy import occupancy
from legato.metrics.summary import measure
from legato.recording import Recording
from legato.report import words
from legato.report.html import sections
from legato.report.html.against import KINDS as AGAINST
from legato.report.html.against import against
from legato.report.html.chart import DARK, LIGHT, RIGHT_PX, Chart, config
from legato.report.html.distribution import distribution
from legato.report.html.markup import Child, Markup, element, json_script, together
from legato.report.html.over_time import over_time
from legato.report.html.roll import Roll, packed, roll
from legato.report.html.stalls import longest
from legato.report.lookup import Summary, recordings, text

SCRIPTS = (
    "vendor/vega.min.js",
    "vendor/vega-lite.min.js",
    "vendor/vega-interpreter.min.js",
    "theme.js",
    "charts.js",
    "unpack.js",
    "roll-view.js",
    "roll-paint.js",
    "roll.js",
)
LICENCES = ("vendor/LICENSE-vega", "vendor/LICENSE-vega-lite")


def write(recording: Recording, summary: Summary, path: Path) -> int:
    """Write the page of a recording; returns its size in bytes."""
    page = render(recording, summary).encode()
    try:
        path.write_bytes(page)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    return len(page)


def charts(recording: Recording, summary: Summary) -> list[Chart]:
    """The charts that the recording gives something for, the piano roll left out."""
    itl = samples.spread_evenly(measure(recording).gaps)
    if not len(itl):
        return []
    return [
        distribution(summary, itl),
        over_time(itl, occupancy(recording)),
        *against(summary),
    ]


def render(recording: Recording, summary: Summary) -> str:
    """The whole page."""
    measured = measure(recording)
    made = roll(recording, measured)
    sent_ns = recording.ints("sent_ns")[made.rows]
    stalls = longest(measured, made, int(sent_ns[0]) if len(sent_ns) else 0)
    drawn = charts(recording, summary)
    contents = _contents(summary, drawn, made, sections.smoothness(summary, stalls))
    body = [
        sections.header(summary),
        _navigation(contents),
        element("main", *(_section(identity, held) for identity, held in contents.items())),
        _footer(summary),
        json_script("charts", _chart_data(drawn)),
        json_script("roll-data", packed(made)) if len(made.rows) else None,
    ]
    return _document(f"legato: {_name(summary)}", body)


SECTIONS = {
    "figures": "Figures",
    "distribution": "Distribution",
    "time": "Over time",
    "against": "Against position, context, load",
    "roll": "Piano roll",
    "failures": "Failures",
    "smoothness": "Smoothness",
    "tools": "Other tools",
    "instrument": "The instrument",
    "settings": "Settings",
}


def _contents(
    summary: Summary, drawn: list[Chart], made: Roll, smoothness: Markup
) -> dict[str, Markup]:
    """What each section holds; those with nothing to say are left out."""
    by_name = {chart.name: chart for chart in drawn}
    several = [by_name[name] for _, name, *_ in AGAINST if name in by_name]
    measured = words.measured(summary)
    contents = {
        "figures": sections.figures(summary) if measured else None,
        "distribution": _figure(by_name.get("itl-distribution")),
        "time": _figure(by_name.get("gaps-over-time")),
        "against": element("div", *map(_figure, several), class_="several") if several else None,
        "roll": _roll(made) if len(made.rows) else None,
        "failures": sections.failures(summary),
        "smoothness": smoothness if drawn else None,
        "tools": sections.tools(summary) if drawn else None,
        "instrument": sections.instrument(summary),
        "settings": sections.settings(summary),
    }
    return {identity: held for identity, held in contents.items() if held is not None}


def _section(identity: str, content: Markup) -> Markup:
    return element("section", element("h2", SECTIONS[identity]), content, id=identity)


def _figure(chart: Chart | None) -> Markup | None:
    if chart is None:
        return None
    return element(
        "figure",
        element("div", class_="chart", data_chart=chart.name),
        element("figcaption", element("b", f"{chart.title}. "), chart.caption),
    )


def _roll(made: Roll) -> Markup:
    rule = []
    if made.every_tick > 1:
        rule.append(
            f"One chunk in {made.every_tick} is drawn, with the first and last of each stream and"
            " both ends of every stall."
        )
    if made.left_out_rows:
        rule.append(
            f"{made.left_out_rows:,} streams are left out: of those without a stall or a failure"
            f" one in {made.every_row} is shown."
        )
    caption = (
        "A row a stream in the order they were sent, a tick a chunk with tokens; the pale stretch"
        " before the first tick is the wait for it. Red: a stall, longer than 100 ms and five times"
        f" the stream's median gap. Times to {made.unit_ns / 1e6:g} ms. "
    )
    if made.status.any():
        rule.append("A red end: the stream failed or was cut.")
    keys = (
        "Keys: ↑ ↓ stream, ← → chunk, Page Up/Down, Home/End, + − zoom time, [ ] rows shown,"
        " n p next and previous stall, 0 reset."
    )
    return element(
        "figure",
        element("div", id="roll-controls", class_="controls"),
        element(
            "div",
            element(
                "canvas",
                id="roll-canvas",
                tabindex="0",
                role="application",
                aria_roledescription="piano roll",
                aria_label=f"Piano roll of {len(made.rows):,} streams",
                aria_describedby="roll-status roll-keys",
            ),
            element("canvas", id="roll-map", aria_hidden="true"),
            class_="roll",
        ),
        element("p", id="roll-status", role="status", class_="status"),
        element("figcaption", element("b", "Piano roll. "), caption + " ".join(rule)),
        element("p", keys, id="roll-keys", class_="note screen"),
        class_="roll-figure",
    )


def _navigation(contents: Iterable[str]) -> Markup:
    links = [element("a", SECTIONS[identity], href=f"#{identity}") for identity in contents]
    return element("nav", *links, aria_label="Sections")


def _footer(summary: Summary) -> Markup:
    # Names, not paths: a page is sent to people who need not know where it was made.
    made_of = ", ".join(Path(path).name for path in recordings(summary)) or "a recording"
    licences = [element("pre", _asset(name)) for name in LICENCES]
    return element(
        "footer",
        element(
            "p",
            f"Made by legato {legato.__version__} from {made_of}. This page loads nothing from a"
            " network and holds no text of prompts or answers.",
        ),
        element(
            "details",
            element("summary", "Licences of the chart libraries: Vega, Vega-Lite (BSD-3-Clause)"),
            *licences,
        ),
    )


def _chart_data(drawn: list[Chart]) -> dict[str, object]:
    return {
        "right_px": RIGHT_PX,
        "config": {"light": config(LIGHT), "dark": config(DARK)},
        "theme": {"light": dataclasses.asdict(LIGHT), "dark": dataclasses.asdict(DARK)},
        "charts": {
            chart.name: {
                "left_px": chart.left_px,
                "spec": {"description": f"{chart.title}. {chart.caption}", **chart.spec},
            }
            for chart in drawn
        },
    }


def _name(summary: Summary) -> str:
    model = text(summary, "run", "settings", "model")
    return model or "report"


def _document(title: str, body: Iterable[Child]) -> str:
    scripts = [_script(name) for name in SCRIPTS]
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="referrer", content="no-referrer"),
        element("title", title),
        Markup(f"<style>{_asset('page.css')}</style>"),
    )
    tail = together(Markup(f"<script>{script}</script>\n") for script in scripts)
    page = element("html", head, element("body", *body, tail), lang="en")
    return f"<!DOCTYPE html>\n{page.html}\n"


def _script(name: str) -> str:
    # A link to a source map would send a debugger looking for a file that is not there.
    return re.sub(r"\n//# sourceMappingURL=.*", "", _asset(name))


def _asset(name: str) -> str:
    return files("legato.report.html").joinpath("assets", name).read_text(encoding="utf-8")


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
