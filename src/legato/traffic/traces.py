"""Trace files: when requests came and how long they were, in the layouts in which traces are
published.

Read as they are: Mooncake (JSONL: timestamp in ms, input_length, output_length), the Azure LLM
inference traces (CSV: TIMESTAMP, ContextTokens, GeneratedTokens), BurstGPT (CSV: Timestamp in s,
Request tokens, Response tokens), and a plain CSV or JSONL with `time_s`, `prompt_tokens`,
`output_tokens`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from legato.errors import UsageError

_MAX_TOKENS = 10_000_000
_AZURE_FRACTION = 6  # digits of a second that datetime reads; Azure writes seven


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request of a trace."""

    at_s: float  # from the first
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How a published trace names its columns, and in what its times are."""

    name: str
    time: str
    prompt: str
    output: str
    seconds: Callable[[Any], float]


def _azure_seconds(text: Any) -> float:
    moment, dot, fraction = str(text).partition(".")
    kept = moment + (dot + fraction[:_AZURE_FRACTION] if dot else "")
    return datetime.fromisoformat(kept).timestamp()


LAYOUTS = (
    Layout("Mooncake", "timestamp", "input_length", "output_length", lambda v: float(v) / 1000),
    Layout("Azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens", _azure_seconds),
    Layout("BurstGPT", "Timestamp", "Request tokens", "Response tokens", float),
    Layout("plain", "time_s", "prompt_tokens", "output_tokens", float),
)


def read(path: str, speed: float = 1.0, requests: int | None = None) -> list[Arrival]:
    """The trace's requests in order of time, `speed` times as fast, the first `requests` of
    them. One bad line is named and refuses the file: a trace with holes is another trace."""
    rows = list(_rows(path))
    if not rows:
        raise UsageError(f"the trace {path} holds no request")
    layout = _layout(path, rows[0][1])
    read_rows = sorted(_arrival(path, line, row, layout) for line, row in rows)
    first_s = read_rows[0][0]
    return [
        Arrival((at_s - first_s) / speed, prompt, output)
        for at_s, prompt, output in read_rows[:requests]
    ]


def _rows(path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line number, columns) of each row."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the trace {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"the trace {path} is not UTF-8 at byte {error.start}") from None
    lines = text.splitlines()
    if lines and lines[0].lstrip().startswith("{"):
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, _json_row(path, number, line)
    else:
        reader = csv.DictReader(lines, skipinitialspace=True)
        for row in reader:
            yield reader.line_num, row


def _json_row(path: str, number: int, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise UsageError(f"line {number} of the trace {path} is not a JSON object")
    return row


def _layout(path: str, row: Mapping[str, Any]) -> Layout:
    for layout in LAYOUTS:
        if {layout.time, layout.prompt, layout.output} <= row.keys():
            return layout
    raise UsageError(
        f"the trace {path} is in no layout that is known: it needs time_s, prompt_tokens and"
        " output_tokens, or the columns of Mooncake, Azure or BurstGPT"
    )


def _arrival(
    path: str, line: int, row: Mapping[str, Any], layout: Layout
) -> tuple[float, int, int]:
    try:
        at_s = layout.seconds(row[layout.time])
        prompt, output = int(row[layout.prompt]), int(row[layout.output])
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"line {line} of the trace {path} is not a request of the {layout.name} layout"
        ) from None
    if not (0 <= prompt <= _MAX_TOKENS and 0 <= output <= _MAX_TOKENS and abs(at_s) < 1e12):
        raise UsageError(f"line {line} of the trace {path} has an impossible time or length")
    # A request that asks nothing or for nothing cannot be sent; published traces have a few.
    return at_s, max(1, prompt), max(1, output)
