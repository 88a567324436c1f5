"""`legato bench`: its options, and what it prints."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from legato import slo as slos
from legato.errors import UsageError
from legato.report.command import GATE, present, slo_of
from legato.traffic import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_url(parser)
    options.add_load(parser)
    options.add_asking(parser)
    options.add_connection(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="FILE.parquet", help="the recording (legato-TIME.parquet)")
    output.add_argument("--json", action="store_true", help="print only the summary, as JSON")
    options.add_decoding(output)
    slos.add_options(output, GATE)


def run(args: argparse.Namespace) -> int:
    options.check_url(args.url)
    slo = slo_of(args)
    make_bench = options.bench_maker(args)
    load, out = options.load_of(args), _out(args.out)
    from legato.report.live import LiveView
    from legato.traffic import bench as benches

    with options.target(args.url) as url, LiveView() as view:
        bench = replace(make_bench(url, load, out), embedded=args.url is None)
        result = benches.run(bench, view)
    for error in result.errors:
        print(f"legato: {error}", file=sys.stderr)
    return present([result.out], as_json=args.json, interrupted=result.interrupted, slo=slo)


def _out(name: str | None) -> Path:
    if name is None:
        return Path(time.strftime("legato-%Y%m%d-%H%M%S.parquet"))
    out = Path(name)
    if out.suffix != ".parquet":
        raise UsageError(f"--out {name} must end in .parquet")
    if not out.parent.is_dir():
        raise UsageError(f"--out {name}: there is no folder {out.parent}")
    return out
