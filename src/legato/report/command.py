"""`legato report`: recordings read again, and the one place where a summary is printed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legato import slo as slos
from legato.errors import UsageError

if TYPE_CHECKING:
    from legato.recording import Recording
    from legato.slo import Slo

GATE = (
    "hold the run against this, such as 'itl.p99<50ms,error<1%%' or reader; exit code 1 where it"
    " fails"
)


@dataclass(frozen=True, slots=True)
class Look:
    """The files with charts that were asked for."""

    html: Path | None
    charts: Path | None
    chart_format: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="a recording, a folder of them, or the .partial folder an unfinished run left",
    )
    parser.add_argument("--json", action="store_true", help="print only the summary, as JSON")
    parser.add_argument("--dialect", metavar="NAME", help="only what this tool would have printed")
    slos.add_options(parser, GATE)
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="also write one self-contained page with charts"
    )
    parser.add_argument(
        "--charts", type=Path, metavar="DIR", help="also write each chart as an image"
    )
    parser.add_argument(
        "--chart-format", choices=("svg", "png"), default="svg", help="default: %(default)s"
    )


def slo_of(args: argparse.Namespace) -> Slo | None:
    return None if args.slo is None else slos.resolve(args.slo, args.profile_file)


def run(args: argparse.Namespace) -> int:
    look = Look(args.html, args.charts, args.chart_format)
    slo = slo_of(args)
    return present(args.runs, as_json=args.json, dialect=args.dialect, look=look, slo=slo)


def present(
    runs: Sequence[Path],
    *,
    as_json: bool,
    dialect: str | None = None,
    interrupted: bool = False,
    look: Look | None = None,
    slo: Slo | None = None,
) -> int:
    """Print the summary of `runs` taken together; returns the exit code it calls for."""
    from legato.metrics.summary import summarise
    from legato.recording import concatenate
    from legato.wire.folder import load

    for run in runs:
        if runs.count(run) > 1:
            raise UsageError(f"{run} is named more than once, which would count it as often")
    recording = concatenate([load(run) for run in runs])
    summary = summarise(recording, slo=slo.conditions if slo is not None else ())
    summary["run"]["recording"] = [str(run) for run in runs]
    if look is not None:
        _draw(recording, summary, look)
    if dialect is not None:
        _print_dialect(summary, dialect)
    elif as_json:
        print(json.dumps(summary, allow_nan=False))
    else:
        from rich.console import Console

        from legato.report.terminal import render

        render(summary, Console())
    return 130 if interrupted and not summary["streams"]["ok"] else exit_code(summary)


def _draw(recording: Recording, summary: dict[str, Any], look: Look) -> None:
    """Write the page and the images; stdout stays the summary's."""
    if look.html is not None:
        from legato.report.html.document import write

        size = write(recording, summary, look.html)
        print(f"wrote {look.html} ({size / 1e6:.1f} MB)", file=sys.stderr)
    if look.charts is not None:
        from legato.report.html.images import write_charts

        written = write_charts(recording, summary, look.charts, look.chart_format)
        print(f"wrote {len(written)} charts into {look.charts}", file=sys.stderr)


def exit_code(summary: dict[str, Any]) -> int:
    """4 where no stream succeeded, 3 where the run is no measurement, 1 where the SLO is not
    known to hold, else 0."""
    if not summary["streams"]["ok"]:
        return 4
    if summary["instrument"]["verdict"] == "invalid":
        return 3
    judged = (summary["goodput"] or {}).get("conditions", [])
    return 1 if any(outcome["verdict"] != "holds" for outcome in judged) else 0


def _print_dialect(summary: dict[str, Any], name: str) -> None:
    dialects = summary["dialects"]
    if name not in dialects:
        raise UsageError(f"there is no dialect {name!r}; choose one of {', '.join(dialects)}")
    json.dump(dialects[name], sys.stdout, indent=2)
    print()
