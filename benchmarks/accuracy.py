"""The error of a gap against the metronome's truth log, kernel stamps beside read times.

    python -m benchmarks.accuracy [--rounds 3] [--seconds 5]

Every level is run once a round, so that a noisy moment of the machine hits all levels alike; each
figure is the median over the rounds with its range. Kernel stamps and read times come from the
same chunks of the same run. Metronome and client share this machine's cores.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence

from legato.calibrate.command import parse_levels
from legato.calibrate.level import Figures, Level, measure

LEVELS = "1x100,50x100,200x100,1000x20,500x100,2000x20"
CLAIMED = (Level(200, 100.0), Level(1000, 20.0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--levels", default=LEVELS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a stream")
    arguments = parser.parse_args()
    levels = parse_levels(arguments.levels)
    found: dict[Level, list[Figures]] = {level: [] for level in levels}
    for round_number in range(arguments.rounds):
        for level in levels:
            print(f"round {round_number + 1}: {level}", file=sys.stderr)
            found[level].append(measure(level, seconds=arguments.seconds))
    print(f"{os.cpu_count()} CPUs, metronome included; median of {arguments.rounds} rounds [range]")
    print("|recorded gap − true gap| in µs")
    for level, figures in found.items():
        _print_level(level, figures)
    return 0 if all(_holds(found[level]) for level in CLAIMED if level in found) else 1


def _print_level(level: Level, figures: list[Figures]) -> None:
    print(f"\n{level.streams} streams × {level.tokens_per_s:g} tokens/s")
    for name in ("p50", "p99", "max"):
        kernel = _spread([f.kernel_us[name] for f in figures])
        user = _spread([f.user_us[name] for f in figures])
        print(f"  {name:<4} kernel {kernel:<28} read time {user}")
    print(f"  exact arrivals   {_spread([100 * f.exact_share for f in figures])} %")
    print(f"  … inside a send  {_spread([100 * f.inside_share for f in figures])} %")
    contained = [100 * f.contained_share for f in figures if f.contained_share is not None]
    if contained:
        print(f"  intervals that hold the truth {_spread(contained)} %")
    print(f"  TTFT error, mean {_spread([f.ttft_error_us for f in figures])} µs")
    print(f"  events lost      {sum(f.lost_events for f in figures)}")
    print(f"  client CPU       {_spread([f.cpu_us_per_event for f in figures])} µs an event")


def _spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    return f"{statistics.median(known):,.1f} [{min(known):,.1f}, {max(known):,.1f}]"


def _holds(figures: list[Figures]) -> bool:
    """What the README claims, in the median round."""
    good = sum(not f.complaints for f in figures)
    return good * 2 > len(figures)


if __name__ == "__main__":
    sys.exit(main())
