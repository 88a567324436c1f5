"""`legato sweep`: its options, the levels one after the other, and what it prints."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from legato import slo as slos
from legato.errors import LegatoError, RecordingError, UsageError
from legato.traffic import options
from legato.traffic.level import Level, add_level_options, load_of, run_level

if TYPE_CHECKING:
    from legato.slo import Slo
    from legato.traffic.level import LevelRun
    from legato.traffic.plan import Load

REQUESTS_A_SLOT = 10
SUMMARY = "sweep.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_url(parser)
    load = parser.add_argument_group("load")
    load.add_argument(
        "--concurrency", metavar="N,N,…", help="levels of streams kept open (1,2,4,8,16,32)"
    )
    load.add_argument("--rate", metavar="R,R,…", help="levels of requests a second, instead")
    add_level_options(load, REQUESTS_A_SLOT)
    slos.add_options(load, "count as goodput the requests that met this: conditions or a profile")
    options.add_asking(parser)
    options.add_connection(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="DIR", help="folder of the recordings (legato-sweep-TIME)")
    output.add_argument("--json", action="store_true", help="print only the figures, as JSON")
    options.add_decoding(output)


def run(args: argparse.Namespace) -> int:
    from legato.slo import resolve
    from legato.traffic.sweep import parse_levels

    options.check_url(args.url)
    slo = resolve(args.slo, args.profile_file) if args.slo is not None else None
    levels = parse_levels(args.concurrency, args.rate)
    loads = [load_of(level, args, REQUESTS_A_SLOT) for level in levels]
    make_bench = options.bench_maker(args)
    folder = make_folder(args.out, "legato-sweep")
    runs, failure = _run_levels(
        args.url, make_bench, list(zip(levels, loads, strict=True)), folder, slo
    )
    if failure is not None and not runs:
        remove_if_empty(folder)
        raise failure
    _present(runs, slo, folder, as_json=args.json)
    if failure is not None:
        raise failure
    return _exit_code(runs)


def make_folder(name: str | None, prefix: str) -> Path:
    """The folder of the recordings; one that holds anything is refused."""
    folder = Path(name if name is not None else time.strftime(f"{prefix}-%Y%m%d-%H%M%S"))
    try:
        folder.mkdir(exist_ok=True)
        if any(folder.iterdir()):
            raise RecordingError(f"{folder} is not empty; choose another --out or empty it")
    except OSError as error:
        raise UsageError(f"--out {folder}: {error.strerror}") from None
    return folder


def remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()


def _run_levels(
    url: str | None,
    make_bench: options.MakeBench,
    levels: list[tuple[Level, Load]],
    folder: Path,
    slo: Slo | None,
) -> tuple[list[LevelRun], LegatoError | None]:
    """The levels that were run; what stopped them early, other than Ctrl-C, comes with them."""
    runs: list[LevelRun] = []
    conditions = slo.conditions if slo is not None else ()
    try:
        with options.target(url) as target:
            for number, (level, load) in enumerate(levels, 1):
                print(f"level {number} of {len(levels)}: {level}", file=sys.stderr, flush=True)
                out = folder / f"{level.file_name}.parquet"
                runs.append(run_level(make_bench, target, level, load, out, conditions))
                if runs[-1].interrupted:
                    break
    except LegatoError as error:
        return runs, error
    except KeyboardInterrupt:
        if not runs:
            raise
    return runs, None


def _present(runs: list[LevelRun], slo: Slo | None, folder: Path, *, as_json: bool) -> None:
    from legato.traffic.sweep import describe

    text = None if slo is None else str(slo)
    document = json.dumps(describe(runs, text), allow_nan=False)
    (folder / SUMMARY).write_text(document + "\n", encoding="utf-8")
    if as_json:
        print(document)
        return
    from rich.console import Console

    from legato.report.page import Page
    from legato.traffic.sweep_page import render

    page = Page(Console())
    render(runs, text, page)
    page.line(f"recordings in {folder}")


def _exit_code(runs: list[LevelRun]) -> int:
    """As bench's, for the sweep as a whole: some levels beyond what the client or the target
    can do are what a sweep is for."""
    if all(run.verdict == "failed" for run in runs):
        return 4
    usable = any(run.verdict in ("valid", "degraded") for run in runs)
    return 0 if usable else 3
