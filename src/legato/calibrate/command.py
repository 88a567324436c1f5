"""`legato calibrate`: the instrument's error on this machine at rising load."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legato.errors import UsageError

if TYPE_CHECKING:
    from legato.calibrate.level import Figures, Level
    from legato.metronome.tls import TlsFiles

# streams × tokens a second each: the load doubles or so from one to the next.
DEFAULT_LEVELS = "1x100,20x100,50x100,100x100,200x100,1000x20,500x100,2000x25,1000x100"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--levels",
        default=DEFAULT_LEVELS,
        metavar="LIST",
        help="STREAMSxTOKENS_A_SECOND, comma between (%(default)s)",
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0, metavar="S", help="length of a level (%(default)s)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="as in bench")
    parser.add_argument("--tls", action="store_true", help="the error of the TLS mode instead")
    parser.add_argument("--no-save", action="store_true", help="do not keep the result")
    parser.add_argument("--json", action="store_true", help="print only the result, as JSON")


def run(args: argparse.Namespace) -> int:
    levels = parse_levels(args.levels)
    if not 0.2 <= args.seconds <= 600:
        raise UsageError(f"--seconds {args.seconds:g} must be between 0.2 and 600")
    from legato.calibrate import profile
    from legato.calibrate.table import Table

    figures: list[Figures] = []
    with ExitStack() as stack:
        tls = stack.enter_context(_Certificate()).files if args.tls else None
        table = Table(sys.stderr if args.json else sys.stdout, tls=args.tls)
        table.begin()
        for level in levels:
            figures.append(_measure(level, args, tls))
            table.row(figures[-1])
    result = profile_of(figures, tls=args.tls)
    if args.json:
        print(json.dumps(result))
    table.end(result)
    if result["limit"] is None:
        return 3
    if not args.no_save:
        profile.save(result, args.tls)
        table.saved(profile.path())
    return 0


def _measure(level: Level, args: argparse.Namespace, tls: TlsFiles | None) -> Figures:
    from legato.calibrate.level import measure

    return measure(level, seconds=args.seconds, tls=tls, workers=args.workers)


def parse_levels(text: str) -> list[Level]:
    """`200x100,1000x20` in the order of their events a second."""
    from legato.calibrate.level import Level

    levels = []
    for part in text.split(","):
        streams, times, rate = part.strip().lower().replace("×", "x").partition("x")
        try:
            level = Level(int(streams), float(rate))
        except ValueError:
            level = Level(0, 0.0)
        if not times or level.streams < 1 or not 0.1 <= level.tokens_per_s <= 10_000:
            raise UsageError(f"--levels: {part.strip()!r} is not STREAMSxTOKENS_A_SECOND")
        levels.append(level)
    return sorted(levels, key=lambda level: level.events_per_s)


def profile_of(figures: list[Figures], tls: bool) -> dict[str, Any]:
    """The profile: the floor is the worst error among the levels that can be trusted, and the
    limit the highest load below the first that cannot."""
    from legato.calibrate.profile import LABEL

    trusted = []
    for found in figures:
        if found.complaints:
            break
        trusted.append(found)
    floor = {
        name: max((f.kernel_us[name] or 0.0 for f in trusted), default=None)
        for name in ("p50", "p99")
    }
    limit = max((f.level.events_per_s for f in trusted), default=None)
    return {
        "floor_us": floor,
        "limit": None if limit is None else {"events_per_s": limit},
        "label": LABEL,
        "tls": tls,
        "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "levels": [{**asdict(f), "complaints": f.complaints} for f in figures],
    }


class _Certificate:
    """A throw-away certificate for the metronome, by the openssl command."""

    def __enter__(self) -> _Certificate:
        from legato.metronome.tls import TlsFiles

        openssl = shutil.which("openssl")
        if openssl is None:
            raise UsageError("--tls needs the openssl command to make a certificate")
        self._folder = tempfile.TemporaryDirectory(prefix="legato-")
        cert, key = (Path(self._folder.name) / name for name in ("cert.pem", "key.pem"))
        request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        made = subprocess.run(
            [openssl, *request.split(), "-subj", "/CN=localhost", "-out", cert, "-keyout", key],
            capture_output=True,
            check=False,
        )
        if made.returncode:
            raise UsageError("openssl could not make a certificate for --tls")
        self.files = TlsFiles(cert, key)
        return self

    def __exit__(self, *failure: object) -> None:
        self._folder.cleanup()
