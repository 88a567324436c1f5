"""`legato compare`: which recordings stand against which, and what is printed."""

from __future__ import annotations

import argparse
import json
import string
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from legato import expressions
from legato.compare import live
from legato.errors import LegatoError, RecordingError, UsageError
from legato.expressions import Condition

if TYPE_CHECKING:
    from legato.compare.comparable import Facts
    from legato.compare.comparison import Comparison, Side
    from legato.compare.gate import Gate

MOST_SIDES = len(string.ascii_uppercase)


class InvalidRunError(LegatoError):
    """A run of `--live` that is no measurement."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """The sides by their paths, and the figures that matter."""

    sides: tuple[tuple[str, ...], ...]
    primary: tuple[str, str | None]
    gates: tuple[tuple[str, list[Condition]], ...]
    paired: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="recordings; the first is the baseline of each of the others",
    )
    parser.add_argument("--a", nargs="+", metavar="RUN", help="several runs of the baseline")
    parser.add_argument("--b", nargs="+", metavar="RUN", help="several runs of what it faces")
    parser.add_argument(
        "--paired",
        action="store_true",
        help="the runs of --a and --b were taken in turns: compare first with first, and so on",
    )
    parser.add_argument(
        "--live", nargs=2, metavar=("URL_A", "URL_B"), help="measure two endpoints now, in turns"
    )
    parser.add_argument(
        "--primary",
        default="itl.p50",
        metavar="FIGURE",
        help="the figure that decides; all others are corrected for their number (%(default)s)",
    )
    parser.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="EXPR",
        help="exit 1 where this holds, such as 'itl.p99>+5%%'; may be repeated",
    )
    parser.add_argument(
        "--force", action="store_true", help="compare what is not comparable, and say so"
    )
    parser.add_argument("--all", action="store_true", help="show every figure")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print only JSON")
    form.add_argument("--markdown", action="store_true", help="print only Markdown")
    live.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    asked = _asked(args)
    remarks: list[str] = []
    if args.live:
        result = live.run(args)
        if not result.a:
            raise KeyboardInterrupt
        if len(result.a) < result.rounds:
            remarks.append(f"stopped after {len(result.a)} of {result.rounds} rounds")
        remarks.append(f"the recordings are in {result.folder}")
        sides = tuple(tuple(str(path) for path in side) for side in (result.a, result.b))
        asked = Asked(sides, asked.primary, asked.gates, paired=True)
    return _present(asked, args, remarks)


def _asked(args: argparse.Namespace) -> Asked:
    """Wrong usage is told before a recording is read or a request sent."""
    gates = tuple((text, expressions.parse(text, relative=True)) for text in args.fail_if)
    primary = expressions.parse_figure(args.primary)
    if primary[0] == "goodput":
        raise UsageError("--primary goodput: a recording alone has no SLO; choose another figure")
    ways = [bool(args.runs), bool(args.a or args.b), bool(args.live)]
    if sum(ways) > 1:
        raise UsageError("give recordings, or --a and --b, or --live: only one of the three")
    if not args.live:
        live.refuse_options(args)
    if args.a or args.b:
        if not (args.a and args.b):
            raise UsageError("--a and --b go together: one side alone has nothing to face")
        if args.paired and len(args.a) != len(args.b):
            raise UsageError(
                f"--paired needs as many runs in --a as in --b; there are {len(args.a)}"
                f" and {len(args.b)}"
            )
        return Asked((tuple(args.a), tuple(args.b)), primary, gates, args.paired)
    if args.paired and not args.live:
        raise UsageError("--paired belongs to --a and --b")
    if not args.live and not 2 <= len(args.runs) <= MOST_SIDES:
        raise UsageError(
            f"compare needs 2 to {MOST_SIDES} recordings, and got {len(args.runs)}:"
            " legato compare BEFORE.parquet AFTER.parquet"
        )
    return Asked(tuple((run,) for run in args.runs), primary, gates, paired=False)


def _present(asked: Asked, args: argparse.Namespace, remarks: list[str]) -> int:
    from legato.compare import comparable, comparison, gate
    from legato.compare.estimate import Figure

    sides = [_side(letter, paths) for letter, paths in _lettered(asked)]
    facts = {
        side.letter: [comparable.facts(*pair) for pair in zip(side.names, side.runs, strict=True)]
        for side in sides
    }
    objections = _objections(facts, force=args.force, live=bool(args.live))
    wanted = [gate.figure_of(c) for _, conditions in asked.gates for c in conditions]
    compared = comparison.compare(
        sides[0], sides[1:], primary=Figure(*asked.primary), asked=wanted, paired=asked.paired
    )
    gates = [gate.judge(*one, against) for against in compared for one in asked.gates]
    said = [f"compared by force though {why}" for why in objections]
    said += comparable.remarks([run for runs in facts.values() for run in runs])
    _print(compared, facts, gates, [*said, *remarks], objections, args)
    return 0 if all(one.passed for one in gates) else 1


def _print(
    compared: Sequence[Comparison],
    facts: dict[str, list[Facts]],
    gates: Sequence[Gate],
    remarks: Sequence[str],
    objections: Sequence[str],
    args: argparse.Namespace,
) -> None:
    if args.json:
        from legato.compare.document import document

        told = document(compared, facts, gates, remarks, objections=objections)
        json.dump(told, sys.stdout, allow_nan=False)
        print()
    elif args.markdown:
        from legato.compare.markdown import markdown

        print(markdown(compared, facts, gates, remarks), end="")
    else:
        from rich.console import Console

        from legato.compare.terminal import render

        render(compared, facts, gates, remarks, Console(), everything=args.all)


def _lettered(asked: Asked) -> list[tuple[str, tuple[str, ...]]]:
    return list(zip(string.ascii_uppercase, asked.sides, strict=False))


def _side(letter: str, paths: Sequence[str]) -> Side:
    from legato.compare.comparison import Side
    from legato.wire.folder import load

    return Side(letter, tuple(paths), tuple(load(path) for path in paths))


def _objections(facts: dict[str, list[Facts]], *, force: bool, live: bool) -> list[str]:
    """Raise, or with `--force` return, what forbids the comparison."""
    from legato.compare import comparable

    runs = [run for side in facts.values() for run in side]
    for run in runs:
        if not run.ok:
            raise RecordingError(f"{run.name} holds no stream that ended well: nothing to compare")
    invalid = comparable.invalid(runs)
    unlike = [why for run in runs[1:] for why in comparable.objections(runs[0], run)]
    if force or not (invalid or unlike):
        return [*invalid, *unlike]
    first, *others = [*unlike, *invalid]
    more = f" (and {len(others)} more)" if others else ""
    error = InvalidRunError if live and not unlike else UsageError
    raise error(f"not comparable: {first}{more}; --force compares all the same")
