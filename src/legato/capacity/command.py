"""`legato capacity`: its options, the runs a search asks for, and what it prints."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from legato import slo as slos
from legato.errors import LegatoError, TargetError, UsageError
from legato.traffic import options
from legato.traffic.level import Level, add_level_options, load_of, run_level
from legato.traffic.sweep_command import make_folder, remove_if_empty

if TYPE_CHECKING:
    from legato.capacity.document import Found, Trial
    from legato.capacity.edge import Measurement
    from legato.expressions import Condition

REQUESTS_A_SLOT = 6
MOST = 1024
PEAK_TIMES = (3, 5)
SUMMARY = "capacity.json"
_EXIT = {"none": 1, "client": 3, "stopped": 130}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_url(parser)
    asked = parser.add_argument_group("the question")
    slos.add_options(
        asked,
        "what must hold: conditions such as itl.p99<50ms,ttft.p90<1s, or reader,"
        " coder, agent, speech, batch",
    )
    asked.add_argument(
        "--by",
        choices=("concurrency", "rate"),
        default="concurrency",
        help="load is streams kept open, or requests a second (%(default)s)",
    )
    asked.add_argument(
        "--min", type=float, default=1, metavar="N", help="lowest load (%(default)s)"
    )
    asked.add_argument(
        "--max", type=float, default=MOST, metavar="N", help="highest load tried (%(default)s)"
    )
    asked.add_argument(
        "--runs", type=int, default=12, metavar="N", help="runs to spend at most (%(default)s)"
    )
    asked.add_argument(
        "--peak", type=float, metavar="N", help="expected peak load: 3 and 5 times it are run too"
    )
    asked.add_argument(
        "--cost-per-hour", type=float, metavar="C", help="of the target: gives cost a token"
    )
    load = parser.add_argument_group("load of each run")
    add_level_options(load, REQUESTS_A_SLOT)
    options.add_asking(parser)
    options.add_connection(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", metavar="DIR", help="folder of the recordings (legato-capacity-TIME)"
    )
    output.add_argument("--json", action="store_true", help="print only the answer, as JSON")
    options.add_decoding(output)


def run(args: argparse.Namespace) -> int:
    from legato.slo import resolve

    options.check_url(args.url)
    if args.slo is None:
        raise UsageError("--slo is needed: conditions such as itl.p99<50ms, or a profile")
    slo = resolve(args.slo, args.profile_file)
    _check(args)
    load_of(Level(args.by, args.min), args, REQUESTS_A_SLOT)
    make_bench = options.bench_maker(args)
    from legato.capacity.document import Found
    from legato.capacity.pressure import with_implied
    from legato.capacity.search import Scope, search

    conditions = with_implied(slo.conditions)
    folder = make_folder(args.out, "legato-capacity")
    scope = Scope(args.min, args.max, args.by == "concurrency", args.runs)
    with options.target(args.url) as url:
        runs = _Runs(args, make_bench, url, folder, conditions)
        answer = search(runs.measure, scope)
        if args.peak is not None and answer.ending != "stopped":
            runs.at_peak(args.peak)
    if not runs.trials:
        remove_if_empty(folder)
        raise runs.failure or KeyboardInterrupt
    found = Found(args.by, slo, answer, runs.trials, runs.peak, args.cost_per_hour)
    _present(found, folder, as_json=args.json)
    if runs.failure is not None:
        raise runs.failure
    return _EXIT.get(answer.ending, 0)


def _check(args: argparse.Namespace) -> None:
    if args.runs < 1:
        raise UsageError(f"--runs {args.runs} must be at least 1")
    for name in ("min", "max", "peak"):
        value = getattr(args, name)
        if value is not None and not 0 < value <= 1e6:
            raise UsageError(f"--{name} {value:g} must be greater than 0 and at most 1000000")
        if value is not None and args.by == "concurrency" and value != int(value):
            raise UsageError(f"--{name} {value:g} must be a whole number of streams")
    if args.min > args.max:
        raise UsageError(f"--min {args.min:g} is more than --max {args.max:g}")
    if args.cost_per_hour is not None and not 0 <= args.cost_per_hour < float("inf"):
        raise UsageError(f"--cost-per-hour {args.cost_per_hour:g} must be 0 or more")
    if args.requests is not None and args.by == "concurrency":
        raise UsageError(
            "--requests cannot be the same for every number of streams: leave it out, or give"
            " --duration"
        )


@dataclass(slots=True)
class _Runs:
    """The runs so far, and how another is made. A failure ends the search, not what it found."""

    args: argparse.Namespace
    make_bench: options.MakeBench
    url: str
    folder: Path
    conditions: tuple[Condition, ...]
    trials: list[Trial] = field(default_factory=list)
    peak: list[Trial] = field(default_factory=list)
    failure: LegatoError | None = None

    def measure(self, value: float) -> Measurement | None:
        from legato.capacity.edge import Measurement
        from legato.capacity.pressure import worst

        level = Level(self.args.by, value)
        number = len(self.trials) + 1
        print(f"run {number} of at most {self.args.runs}: {level}", file=sys.stderr, flush=True)
        trial = self._trial(level, f"run-{number:02d}")
        if trial is None:
            return None
        self.trials.append(trial)
        if number == 1 and not trial.run.summary["streams"]["ok"]:
            raise TargetError(
                f"no stream succeeded at {level}: see 'legato report {trial.run.out}'"
            )
        hardest = worst(trial.judged)
        return Measurement(value, hardest.pressure, hardest.error, trial.held)

    def at_peak(self, peak: float) -> None:
        for times in PEAK_TIMES:
            level = Level(self.args.by, times * peak)
            print(f"{times} × the peak: {level}", file=sys.stderr, flush=True)
            trial = self._trial(level, f"peak-{times}x")
            if trial is None:
                return
            self.peak.append(trial)

    def _trial(self, level: Level, name: str) -> Trial | None:
        """None where it was interrupted or failed as a whole."""
        from legato.capacity.document import Trial
        from legato.capacity.pressure import judge

        load = load_of(level, self.args, REQUESTS_A_SLOT)
        out = self.folder / f"{name}-{level.file_name}.parquet"
        try:
            run = run_level(self.make_bench, self.url, level, load, out, self.conditions)
            if run.interrupted:
                return None
            return Trial(run, tuple(judge(run.recording, self.conditions)))
        except KeyboardInterrupt:
            return None
        except LegatoError as error:
            self.failure = error
            return None


def _present(found: Found, folder: Path, *, as_json: bool) -> None:
    from legato.capacity.document import describe

    document = json.dumps(describe(found), allow_nan=False)
    (folder / SUMMARY).write_text(document + "\n", encoding="utf-8")
    if as_json:
        print(document)
        return
    from rich.console import Console

    from legato.capacity.page import render
    from legato.report.page import Page

    page = Page(Console())
    render(found, page)
    page.line(f"recordings in {folder}")
