"""`legato explain`: which cause goes with how much of the gap."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from legato.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="a recording, a folder of them, or the .partial folder an unfinished run left",
    )
    parser.add_argument("--json", action="store_true", help="print only JSON")


def run(args: argparse.Namespace) -> int:
    from legato.explain.attribution import LEAST_READS, attribute
    from legato.explain.document import document
    from legato.recording import concatenate
    from legato.wire.folder import load

    found = attribute(concatenate([load(run) for run in args.runs]))
    if found is None:
        raise UsageError(
            f"{' '.join(str(run) for run in args.runs)} holds fewer than {LEAST_READS} token gaps: "
            "record more or longer answers"
        )
    explained = document(found, [str(run) for run in args.runs])
    if args.json:
        print(json.dumps(explained, allow_nan=False))
    else:
        _render(explained)
    return 0


def _render(explained: dict[str, Any]) -> None:
    from rich.console import Console

    from legato.explain.terminal import render

    render(explained, Console())
