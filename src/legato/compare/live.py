"""`legato compare --live`: two endpoints measured in turns, so that what troubles the machine or
the network troubles both alike. Each run is a recording that is kept."""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from legato.errors import LegatoError, UsageError
from legato.traffic import options
from legato.traffic.plan import Load

if TYPE_CHECKING:
    from legato.traffic.bench import Bench

DEFAULT_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Live:
    """The recordings of whole rounds; fewer than asked where Ctrl-C stopped the last."""

    folder: Path
    rounds: int  # asked for
    a: tuple[Path, ...]
    b: tuple[Path, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    live = parser.add_argument_group("with --live, and all below")
    live.add_argument(
        "--rounds",
        type=int,
        default=DEFAULT_ROUNDS,
        metavar="N",
        help="runs of each endpoint, in the order A B, B A, … (%(default)s)",
    )
    live.add_argument("--out", metavar="DIR", help="where recordings go (legato-compare-TIME)")
    live.add_argument("--model-b", metavar="NAME", help="URL_B's model, where it is another")
    live.add_argument("--api-key-file-b", metavar="FILE", help="URL_B's key, likewise")
    options.add_decoding(live)
    options.add_load(parser)
    options.add_asking(parser)
    options.add_connection(parser)


def refuse_options(args: argparse.Namespace) -> None:
    """Without `--live` its options would be ignored in silence."""
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    for action in parser._actions:
        if getattr(args, action.dest) != action.default:
            raise UsageError(f"{action.option_strings[0]} belongs to --live")


def run(args: argparse.Namespace) -> Live:
    """Everything that can be wrong with the options is told before the first request."""
    if args.rounds < 1:
        raise UsageError(f"--rounds {args.rounds} must be at least 1")
    benches = _benches(args)
    folder = _folder(args.out)
    paths = [
        tuple(folder / f"{side}-{number}.parquet" for number in range(1, args.rounds + 1))
        for side in "ab"
    ]
    if taken := [path for path in (*paths[0], *paths[1]) if path.exists()]:
        raise UsageError(f"{taken[0]} exists; choose another --out or remove it")
    for number in range(args.rounds):
        # A B, then B A: a drift over the whole time then favours neither.
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            print(f"round {number + 1} of {args.rounds}: {args.live[side]}", file=sys.stderr)
            if not _run_to_its_end(benches[side](paths[side][number])):
                return Live(folder, args.rounds, paths[0][:number], paths[1][:number])
    return Live(folder, args.rounds, paths[0], paths[1])


def _run_to_its_end(bench: Bench) -> bool:
    """False where Ctrl-C ended it."""
    from legato.report.live import LiveView
    from legato.traffic import bench as benches

    try:
        with LiveView() as view:
            result = benches.run(bench, view)
    except (KeyboardInterrupt, benches.InterruptedDecodeError):
        return False
    if result.errors:
        raise LegatoError(f"{result.out}: {result.errors[0]}")
    return not result.interrupted


def _benches(args: argparse.Namespace) -> list[Callable[[Path], Bench]]:
    """For each side what makes a run of a path."""
    of_b = copy.copy(args)
    of_b.model = args.model_b or args.model
    of_b.api_key_file = args.api_key_file_b or args.api_key_file
    load = options.load_of(args)
    makers = []
    for url, side in zip(args.live, (args, of_b), strict=True):
        options.check_url(url)
        makers.append(_maker(options.bench_maker(side), url, load))
    return makers


def _maker(make: options.MakeBench, url: str, load: Load) -> Callable[[Path], Bench]:
    return lambda out: make(url, load, out)


def _folder(name: str | None) -> Path:
    folder = Path(name or time.strftime("legato-compare-%Y%m%d-%H%M%S"))
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder}: {error.strerror}") from None
    return folder
