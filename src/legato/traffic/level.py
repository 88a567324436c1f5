"""One level of a sweep or of a capacity search: its load, its run, and its figures once trimmed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from legato.expressions import Condition
from legato.traffic.options import MakeBench, add_spacing, add_workers
from legato.traffic.plan import Load, check_load

if TYPE_CHECKING:
    from legato.recording import Recording

By = Literal["concurrency", "rate"]
LEAST_REQUESTS = 30  # fewer tell too little of a tail
RATE_SECONDS = 20  # how long a level of an open loop lasts by default


@dataclass(frozen=True, slots=True)
class Level:
    """So many streams kept open, or so many requests a second."""

    by: By
    value: float

    def __str__(self) -> str:
        if self.by == "rate":
            return f"{self.value:g} requests/s"
        return f"{self.value:.0f} stream" + ("" if self.value == 1 else "s")

    @property
    def file_name(self) -> str:
        shown = f"{self.value:g}" if self.by == "rate" else f"{self.value:04.0f}"
        return f"{self.by}-{shown}"


@dataclass(frozen=True, slots=True)
class LevelRun:
    """A level that was run; `recording` has its ramp and drain marked as warm-up."""

    level: Level
    out: Path
    recording: Recording
    summary: dict[str, Any]
    steady: dict[str, Any]
    trimmed: dict[str, Any]
    interrupted: bool

    @property
    def verdict(self) -> str:
        return "failed" if not self.summary["streams"]["ok"] else str(self._instrument["verdict"])

    @property
    def reasons(self) -> list[str]:
        return list(self._instrument["reasons"])

    @property
    def _instrument(self) -> dict[str, Any]:
        found: dict[str, Any] = self.summary["instrument"]
        return found


def add_level_options(load: argparse._ArgumentGroup, requests_each: int) -> None:
    """How long a level lasts and how it is sent, for sweep and capacity alike."""
    load.add_argument(
        "--requests",
        type=int,
        metavar="N",
        help=f"requests of each level ({requests_each} a stream kept open,"
        f" {RATE_SECONDS} s of a rate, at least {LEAST_REQUESTS})",
    )
    load.add_argument("--duration", type=float, metavar="S", help="seconds a level, instead")
    add_spacing(load)
    add_workers(load)


def load_of(level: Level, args: argparse.Namespace, requests_each: int) -> Load:
    """The load of one level; contradictions are refused."""
    requests = args.requests
    concurrency = int(level.value) if level.by == "concurrency" else None
    if requests is None and args.duration is None:
        usual = requests_each * level.value if concurrency else RATE_SECONDS * level.value
        requests = max(LEAST_REQUESTS, round(usual))
    workers = args.workers
    return check_load(
        concurrency=concurrency,
        rate=None if concurrency else f"{level.value!r}",
        spacing=args.arrivals,
        burstiness=args.burstiness,
        seed=args.seed,
        requests=requests,
        duration_s=args.duration,
        workers=min(workers, concurrency) if workers and concurrency else workers,
    )


def run_level(
    make_bench: MakeBench,
    url: str,
    level: Level,
    load: Load,
    out: Path,
    slo: Sequence[Condition] = (),
) -> LevelRun:
    """Send the load, keep its recording in `out`, and read it back trimmed."""
    from legato.report.live import LiveView
    from legato.traffic import bench as benches

    with LiveView() as view:
        result = benches.run(make_bench(url, load, out), view)
    for error in result.errors:
        print(f"legato: {error}", file=sys.stderr)
    return read_level(level, result.out, slo, interrupted=result.interrupted)


def read_level(
    level: Level, out: Path, slo: Sequence[Condition], *, interrupted: bool = False
) -> LevelRun:
    from legato.expressions import streams_meeting
    from legato.metrics import steady
    from legato.metrics.summary import summarise
    from legato.wire.folder import load as load_recording

    recording = load_recording(out)
    trimmed = steady.trim(recording)
    summary = summarise(trimmed.recording)
    rates = steady.rates(recording, trimmed.window, streams_meeting(slo, recording))
    summary["run"]["recording"] = [str(out)]
    summary["tps"] = summary["tps"] | {"system": rates["tokens_per_s"]}
    summary["requests_per_s"] = rates["requests_per_s"]
    summary["goodput"] = {"requests_per_s": rates["goodput_per_s"]} if slo else None
    return LevelRun(
        level=level,
        out=out,
        recording=trimmed.recording,
        summary=summary,
        steady=steady.steadiness(trimmed.recording),
        trimmed=trimmed.describe(),
        interrupted=interrupted,
    )
