"""`legato import`: a result file of another tool becomes a recording."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legato.errors import RecordingError, UsageError

if TYPE_CHECKING:
    from legato.exchange.imported import Imported

KNOWN = (
    "it must be a detailed result of 'vllm bench serve', AIPerf's profile_export.jsonl "
    "or GuideLLM's JSON report"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help=f"the result file: {KNOWN}")
    parser.add_argument(
        "--out", type=Path, metavar="FILE.parquet", help="where to write (default: beside FILE)"
    )


def run(args: argparse.Namespace) -> int:
    from legato.exchange.imported import recording

    out = args.out or args.file.with_suffix(".parquet")
    if out.exists():
        raise RecordingError(f"{out} exists; choose another --out or remove it")
    parts = read(args.file)
    made = recording(parts, args.file.name)
    made.write(out)
    version = f" {parts[0].version}" if parts[0].version else ""
    runs = f" in {len(parts)} runs" if len(parts) > 1 else ""
    print(f"{out}: {len(made)} streams of {parts[0].tool}{version}{runs}")
    for line in parts[0].missing:
        print(f"missing: {line}")
    return 0


def read(path: Path) -> list[Imported]:
    """The runs of a result file; one sentence where it is none."""
    from legato.exchange import aiperf, guidellm, vllm

    documents = _documents(path)
    first = documents[0]
    try:
        if aiperf.recognises(first):
            return [aiperf.read(documents)]
        if guidellm.recognises(first):
            return guidellm.read(first)
        if vllm.recognises(first):
            return [vllm.read(document) for document in documents]
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if isinstance(first, dict) and "aiperf_version" in first:
        raise UsageError(f"{path} holds only AIPerf's totals: give profile_export.jsonl instead")
    raise UsageError(f"{path} is no result file that can be imported: {KNOWN}")


def _documents(path: Path) -> list[Any]:
    """One JSON document, or one a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text: {KNOWN}") from None
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    documents = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            documents.append(json.loads(line))
        except ValueError as error:
            raise UsageError(f"{path} is not JSON (line {number}: {error})") from None
    if not documents:
        raise UsageError(f"{path} is empty: {KNOWN}")
    return documents
