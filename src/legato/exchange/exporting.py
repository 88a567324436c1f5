"""`legato export`: a recording in a format that other programs read."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from legato.errors import RecordingError, UsageError

if TYPE_CHECKING:
    from legato.recording import Recording

FORMATS = ("csv", "jsonl", "chrome-trace", "openmetrics")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="a recording, a folder of them, or the .partial folder an unfinished run left",
    )
    parser.add_argument(
        "--format",
        required=True,
        choices=FORMATS,
        help="csv and jsonl: rows; chrome-trace: opens in Perfetto; openmetrics: for Prometheus",
    )
    parser.add_argument(
        "--rows",
        choices=("chunks", "streams"),
        help="csv and jsonl: a row a chunk (default of csv) or a row a stream (of jsonl)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")


def run(args: argparse.Namespace) -> int:
    from legato.recording import concatenate
    from legato.wire.folder import load

    if args.rows and args.format not in ("csv", "jsonl"):
        raise UsageError(f"--rows goes with csv and jsonl, not with {args.format}")
    recording = concatenate([load(run) for run in args.runs])
    with _sink(args.out) as sink:
        export(recording, args.format, args.rows, sink)
    return 0


def export(recording: Recording, form: str, rows: str | None, sink: BinaryIO) -> None:
    from legato.exchange import chrome_trace, openmetrics
    from legato.exchange.rows import write_csv, write_jsonl

    match form:
        case "csv":
            write_csv(recording, rows or "chunks", sink)
        case "jsonl":
            write_jsonl(recording, rows or "streams", sink)
        case "chrome-trace":
            chrome_trace.write(recording, sink)
        case _:
            openmetrics.write(recording, sink)


@contextlib.contextmanager
def _sink(out: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a new file that is removed again where it could not be written whole."""
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = out.open("xb")
    except FileExistsError:
        raise RecordingError(f"{out} exists; choose another --out or remove it") from None
    except OSError as error:
        raise RecordingError(f"cannot write {out}: {error.strerror}") from None
    try:
        with file:
            yield file
    except BaseException as error:
        out.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise RecordingError(f"cannot write {out}: {error.strerror}") from None
        raise
