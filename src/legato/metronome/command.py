"""`legato metronome`: options out of the pattern's fields, and what is said on the terminal."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from legato import invocation
from legato.errors import UsageError
from legato.metronome.pattern import Pattern, PatternError, fields, option_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every field of the pattern is an option of the same name."""
    place = parser.add_argument_group("where")
    place.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    place.add_argument(
        "--port", type=int, default=8011, help="port to listen on; 0 takes a free one (%(default)s)"
    )
    place.add_argument("--truth", type=Path, metavar="FILE", help="write the truth log here")
    place.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate chain, PEM")
    place.add_argument("--tls-key", type=Path, metavar="FILE", help="its key, PEM")
    group = parser.add_argument_group("pattern")
    for item in fields():
        _add_option(group, item)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    from legato.metronome.serve import Settings, serve
    from legato.metronome.tls import TlsFiles

    if (args.tls_cert is None) != (args.tls_key is None):
        raise UsageError("--tls-cert and --tls-key go together: give both or neither")
    tls = TlsFiles(args.tls_cert, args.tls_key) if args.tls_cert else None
    try:
        pattern = Pattern(**{item.name: getattr(args, item.name) for item in fields()})
    except PatternError as error:
        raise error.as_options() from None
    settings = Settings(pattern, args.host, args.port, args.truth, tls)
    scheme = "https" if tls else "http"
    host = f"[{args.host}]" if ":" in args.host else args.host

    def listening(port: int) -> None:
        url = f"{scheme}://{host}:{port}/v1"
        print(f"The metronome listens on {url}", flush=True)
        print(f"Measure it:  {invocation.as_typed('legato bench')} {url}", flush=True)
        if args.truth:
            print(f"Truth log:   {args.truth}", flush=True)
        print("Ctrl-C stops it.", flush=True)

    print(farewell(serve(settings, listening)), flush=True)
    return 0


def farewell(stats: dict[str, Any]) -> str:
    """What it did, in words."""
    requests, events, writes = (
        f"{stats[name]:,} {name if stats[name] != 1 else name.removesuffix('s')}"
        for name in ("requests", "events", "writes")
    )
    sent = f"{requests}, {events} in {writes}"
    late = stats["lateness_us"]
    if late["p50"] is None:
        return f"Stopped: {sent}."
    figures = ", ".join(f"{name} {late[name] / 1000:.3f} ms" for name in ("p50", "p99", "max"))
    return f"Stopped: {sent}. Its own lateness: {figures}."


def _add_option(group: argparse._ArgumentGroup, item: dataclasses.Field[Any]) -> None:
    name = option_of(item.name)
    about = item.metadata["about"]
    kind = str(item.type).removesuffix(" | None")
    if kind == "bool":
        group.add_argument(
            name,
            action=argparse.BooleanOptionalAction,
            default=item.default,
            help=f"{about} ({'on' if item.default else 'off'})",
        )
        return
    default = "" if item.default is None else " (%(default)s)"
    parse = {"int": int, "float": float, "str": str}[kind]
    group.add_argument(
        name,
        type=parse,
        default=item.default,
        choices=item.metadata["among"] or None,
        metavar=None if item.metadata["among"] else kind.upper(),
        help=about + default,
    )
