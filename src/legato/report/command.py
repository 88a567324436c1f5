"""`legato report`: recordings read again, and the one place where a summary is printed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
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
    parser.add_argument("--json", action="store_true", help="print only the summary, as JSON")
    parser.add_argument("--dialect", metavar="NAME", help="only what this tool would have printed")


def run(args: argparse.Namespace) -> int:
    return present(args.runs, as_json=args.json, dialect=args.dialect)


def present(
    runs: Sequence[Path],
    *,
    as_json: bool,
    dialect: str | None = None,
    interrupted: bool = False,
) -> int:
    """Print the summary of `runs` taken together; returns the exit code it calls for."""
    from legato import key
    from legato.metrics.summary import summarise
    from legato.recording import concatenate
    from legato.wire.folder import load

    # A capture that was never decoded may hold an echo of the key.
    hidden = tuple(os.environ[name] for name in key.VARIABLES if os.environ.get(name))
    recording = concatenate([load(run, hidden) for run in runs])
    summary = summarise(recording)
    summary["run"]["recording"] = [str(run) for run in runs]
    if dialect is not None:
        _print_dialect(summary, dialect)
    elif as_json:
        print(json.dumps(summary, allow_nan=False))
    else:
        from rich.console import Console

        from legato.report.terminal import render

        render(summary, Console())
    return 130 if interrupted and not summary["streams"]["ok"] else exit_code(summary)


def exit_code(summary: dict[str, Any]) -> int:
    """4 where no stream succeeded, 3 where the run is no measurement, else 0."""
    if not summary["streams"]["ok"]:
        return 4
    return 3 if summary["instrument"]["verdict"] == "invalid" else 0


def _print_dialect(summary: dict[str, Any], name: str) -> None:
    dialects = summary["dialects"]
    if name not in dialects:
        raise UsageError(f"there is no dialect {name!r}; choose one of {', '.join(dialects)}")
    json.dump(dialects[name], sys.stdout, indent=2)
    print()
