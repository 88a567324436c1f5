"""What an importer yields: streams as far as the file knows them, and what it does not know.

Nothing is invented: a time the file lacks stays unknown or, where a recording must have one, is
said to be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from legato.errors import UsageError
from legato.recording import CONTENT, HAS_CHOICES, USER_CLOCK, Recording, Stream

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000

NO_KERNEL_STAMPS = (
    "when chunks reached this host: the times are those at which the tool read its clock; "
    "a chunk may have come at any moment since the one before it"
)
NO_CONNECTIONS = "connections: whether they were kept, what they cost, retransmits"


@dataclass(frozen=True, slots=True)
class Imported:
    """One run of another tool."""

    tool: str
    streams: list[Stream]
    settings: dict[str, Any]
    missing: list[str]
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """The token chunks of one answer: arrivals from its send and tokens, one of each a chunk."""

    arrival_ns: Sequence[int] = ()
    tokens: Sequence[int] = ()
    kind: Sequence[int] | None = None
    flags: Sequence[int] | None = None

    def columns(self) -> dict[str, Any]:
        """The chunk columns of a recording."""
        count = len(self.arrival_ns)
        # Chunks of one time came in one read. How many segments it held is not known: 0.
        with_previous = [False, *(a == b for a, b in pairwise(self.arrival_ns))][:count]
        with_next = [*with_previous[1:], False][:count]
        return {
            "arrival_ns": list(self.arrival_ns),
            "lag_ns": [0] * count,
            "early_ns": self._early_ns(),
            "read_index": [new - 1 for new in accumulate(not same for same in with_previous)],
            "segments": [
                0 if same or next_same else 1
                for same, next_same in zip(with_previous, with_next, strict=True)
            ],
            "tokens": list(self.tokens),
            "kind": list(self.kind or [CONTENT] * count),
            "flags": [flag | USER_CLOCK for flag in self.flags or [HAS_CHOICES] * count],
        }

    def _early_ns(self) -> list[int]:
        """Nothing in a file of times read late tells more than that a chunk came after the read
        before its own; chunks of one read share that bound."""
        early_ns, read_before_ns, previous_ns = [], 0, 0
        for arrival_ns in self.arrival_ns:
            if arrival_ns != previous_ns:
                read_before_ns, previous_ns = previous_ns, arrival_ns
            early_ns.append(arrival_ns - read_before_ns)
        return early_ns


def spread(total: int, chunks: int) -> tuple[list[int], str]:
    """Tokens per chunk and their source, where a file has only their sum."""
    if total <= 0 or not chunks:
        return [1] * chunks, "chunks"
    return [(i + 1) * total // chunks - i * total // chunks for i in range(chunks)], "usage_spread"


def recording(parts: Sequence[Imported], source: str) -> Recording:
    """All runs of a file as one recording, in order of their sends."""
    streams = sorted(
        (stream for part in parts for stream in part.streams), key=lambda s: s.sent_ns or 0
    )
    load = _open_at_send(streams)
    numbered = [replace(stream, stream_id=i, in_flight=load[i]) for i, stream in enumerate(streams)]
    first = parts[0]
    meta = {
        "settings": first.settings if len(parts) == 1 else {"stamps": "user"},
        "versions": {first.tool: first.version},
        "imported": {
            "tool": first.tool,
            "file": source,
            "missing": first.missing,
            "runs": [part.settings for part in parts],
        },
    }
    return Recording.from_streams(numbered, meta)


def _open_at_send(streams: Sequence[Stream]) -> list[int]:
    sent_ns = np.asarray([stream.sent_ns or 0 for stream in streams], np.int64)
    ended_ns = np.sort(np.asarray([stream.ended_ns for stream in streams], np.int64))
    opened = np.searchsorted(np.sort(sent_ns), sent_ns, side="right")
    # A stream is open at its own send, however early it failed.
    closed = np.searchsorted(ended_ns, sent_ns, side="left")
    return [max(1, int(n)) for n in opened - closed]


def value(holder: Any, *path: str | int, where: str) -> Any:
    """What stands at `path`; UsageError names the first step that is not there."""
    for step in path:
        try:
            holder = holder[step]
        except (KeyError, IndexError, TypeError):
            raise UsageError(f"{where} lacks {'.'.join(str(s) for s in path)!r}") from None
    return holder


def number(holder: Any, *path: str | int, where: str) -> int | float:
    """Integers stay integers: epoch nanoseconds are beyond what a float holds exactly."""
    found = value(holder, *path, where=where)
    if isinstance(found, bool) or not isinstance(found, int | float) or not np.isfinite(found):
        name = ".".join(str(step) for step in path)
        raise UsageError(f"{where} has {found!r} for {name!r}, which must be a number")
    return found


def numbers(holder: Any, *path: str | int, where: str) -> list[int | float]:
    found = value(holder, *path, where=where)
    if not isinstance(found, list):
        raise UsageError(f"{where} has no list at {'.'.join(str(s) for s in path)!r}")
    return [number(found, i, where=where) for i in range(len(found))]


def whole(holder: Any, *path: str) -> int | None:
    """A count that a file may lack."""
    for step in path:
        holder = holder.get(step) if isinstance(holder, dict) else None
    if isinstance(holder, bool) or not isinstance(holder, int | float) or not np.isfinite(holder):
        return None
    return round(holder)
