"""The truth log: its format, and the reader that tests and calibration compare with.

A header, then records of one size in the order things happened. A record's type is its last byte
and is written last, so that of a process killed at any instant every record with a type is whole;
the reader stops at the first without. Times are ns of the system's monotonic clock.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legato.errors import RecordingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAGIC = b"LEGATOTL"
VERSION = 1
# magic, version, record size, run, wall clock − monotonic clock when the log was opened
HEADER = struct.Struct("<8sII16sq")
HEADER_BYTES = 4096
# a, b, c (see each type), stream, index, write, tokens, kind, type
RECORD = struct.Struct("<qqqIIIHBB")

REQUEST, EVENT, PIECE, END = 1, 2, 3, 4

# The same names and order as the recording's, which cannot be imported here: it loads numpy.
KINDS = ("role", "content", "reasoning", "tool", "finish", "usage", "done", "other")
ROLE, CONTENT, REASONING, TOOL, FINISH, USAGE, DONE, OTHER = range(len(KINDS))
TOKEN_KINDS = (CONTENT, REASONING, TOOL)

APIS = ("chat", "text")
ID_PREFIXES = {"chat": "chatcmpl", "text": "cmpl"}

ENDS = ("finished", "client_gone", "closed", "reset", "silent", "http_error")
FINISHED, CLIENT_GONE, CLOSED, RESET, SILENT, HTTP_ERROR = range(len(ENDS))


def response_id(run: str, api: str, stream: int) -> str:
    """The id a response carries; the stream's number is its last part."""
    return f"{ID_PREFIXES[api]}-{run}-{stream}"


@dataclass(frozen=True)
class Truth:
    """A truth log in numpy structured arrays.

    requests: stream, received_ns, prompt_tokens, kernel (1 if the kernel stamped it), api
    events: stream, index, write, kind, tokens, before_ns, after_ns, deadline_ns; a row an event,
        in the order sent. Events of one write share its stamps; an event cut over several writes
        has those of the write that completed it
    sends: stream, write, events, tokens, before_ns, after_ns, deadline_ns; a row a write
    ends: stream, ended_ns, events, reason (an index into ENDS)
    """

    run: str
    wall_offset_ns: int
    requests: Any
    events: Any
    pieces: Any
    ends: Any

    def __len__(self) -> int:
        return len(self.requests)

    @cached_property
    def response_ids(self) -> list[str]:
        """The response id of each row of `requests`."""
        return [
            response_id(self.run, APIS[api], stream)
            for api, stream in zip(
                self.requests["api"].tolist(), self.requests["stream"].tolist(), strict=True
            )
        ]

    def stream_of(self, response: str) -> int:
        """The stream number in a response id; raises KeyError for an id of another run."""
        prefix, _, number = response.rpartition("-")
        if not number.isdigit() or prefix.partition("-")[2] != self.run:
            raise KeyError(response)
        return int(number)

    def request(self, response: str) -> Any:
        """The request's row."""
        import numpy as np

        stream = self.stream_of(response)
        rows = self.requests
        at = int(np.searchsorted(rows["stream"], stream))
        if at == len(rows) or rows["stream"][at] != stream:
            raise KeyError(response)
        return rows[at]

    def events_of(self, response: str) -> Any:
        """Every event of a response, in order: role, tokens, finish, usage and done."""
        stream = self.stream_of(response)
        order, starts = self._by_stream
        if stream + 1 >= len(starts):
            return self.events[:0]
        return self.events[order[starts[stream] : starts[stream + 1]]]

    def arrivals(
        self, response: str
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(before_ns, after_ns, tokens) of each token-bearing event of a response."""
        import numpy as np

        rows = self.events_of(response)
        rows = rows[(rows["tokens"] > 0) & np.isin(rows["kind"], TOKEN_KINDS)]
        before, after = rows["before_ns"].astype(np.int64), rows["after_ns"].astype(np.int64)
        return before, after, rows["tokens"].astype(np.int64)

    def ttft_ns(self, response: str) -> tuple[int, int]:
        """Time from the request to the first token's send: (before, after) of that send."""
        before, after, _ = self.arrivals(response)
        if not len(before):
            raise KeyError(response)
        received = int(self.request(response)["received_ns"])
        return int(before[0]) - received, int(after[0]) - received

    def end_of(self, response: str) -> str | None:
        """How a response ended, one of ENDS; None where it was still open."""
        rows = self.ends[self.ends["stream"] == self.stream_of(response)]
        return ENDS[int(rows["reason"][0])] if len(rows) else None

    @cached_property
    def sends(self) -> Any:
        """A row a write that completed an event."""
        import numpy as np

        order, _ = self._by_stream
        rows = self.events[order]
        names = ("stream", "write", "events", "tokens", "before_ns", "after_ns", "deadline_ns")
        dtype = np.dtype([(name, np.int64) for name in names])
        new = np.ones(len(rows), bool)
        new[1:] = (np.diff(rows["stream"].astype(np.int64)) != 0) | (
            np.diff(rows["write"].astype(np.int64)) != 0
        )
        starts = np.flatnonzero(new)
        sends = np.zeros(len(starts), dtype)
        for name in ("stream", "write", "before_ns", "after_ns", "deadline_ns"):
            sends[name] = rows[name][starts]
        if len(starts):
            sends["events"] = np.diff(np.append(starts, len(rows)))
            sends["tokens"] = np.add.reduceat(rows["tokens"].astype(np.int64), starts)
        return sends

    @cached_property
    def lateness_ns(self) -> npt.NDArray[np.int64]:
        """How late each write was: clock before it − its deadline."""
        import numpy as np

        late: npt.NDArray[np.int64] = self.sends["before_ns"] - self.sends["deadline_ns"]
        return late.astype(np.int64)

    @cached_property
    def _by_stream(self) -> tuple[Any, Any]:
        """(rows of `events` sorted by stream, where each stream number starts in them)."""
        import numpy as np

        order = np.argsort(self.events["stream"], kind="stable")
        streams = self.events["stream"][order]
        count = int(streams[-1]) + 1 if len(streams) else 0
        return order, np.searchsorted(streams, np.arange(count + 1))


def load(path: str | Path) -> Truth:
    """Read a truth log, also of a process that still runs or was killed."""
    import numpy as np

    try:
        with Path(path).open("rb") as file:
            content = file.read()
    except OSError as error:
        raise RecordingError(f"cannot read the truth log {path}: {error.strerror}") from error
    if len(content) < HEADER.size or not content.startswith(MAGIC):
        raise RecordingError(f"{path} is not a truth log of the metronome")
    _, version, size, run, offset = HEADER.unpack_from(content)
    if version != VERSION or size != RECORD.size:
        raise RecordingError(f"{path} is a truth log of version {version}; this reads {VERSION}")
    body = content[HEADER_BYTES:]
    count = len(body) // RECORD.size
    names = ("a", "b", "c", "stream", "index", "write", "tokens", "kind", "type")
    formats = ("<i8", "<i8", "<i8", "<u4", "<u4", "<u4", "<u2", "u1", "u1")
    rows = np.frombuffer(body, np.dtype(list(zip(names, formats, strict=True))), count)
    whole = (rows["type"] >= REQUEST) & (rows["type"] <= END)
    rows = rows[: count if whole.all() else int(np.argmin(whole))]

    def columns(kind: int, chosen: Sequence[tuple[str, str]]) -> Any:
        picked = rows[rows["type"] == kind]
        dtype = np.dtype([(new, rows.dtype[old]) for old, new in chosen])
        result = np.zeros(len(picked), dtype)
        for old, new in chosen:
            result[new] = picked[old]
        return result

    sent = [("a", "before_ns"), ("b", "after_ns"), ("c", "deadline_ns")]
    sent += [(name, name) for name in ("stream", "index", "write", "tokens", "kind")]
    asked = [("a", "received_ns"), ("b", "prompt_tokens"), ("c", "kernel")]
    requests = columns(REQUEST, [*asked, ("stream", "stream"), ("kind", "api")])
    return Truth(
        run=run.rstrip(b"\0").decode("ascii", "replace"),
        wall_offset_ns=offset,
        requests=requests[np.argsort(requests["stream"], kind="stable")],
        events=columns(EVENT, sent),
        pieces=columns(PIECE, sent),
        ends=columns(
            END, [("a", "ended_ns"), ("stream", "stream"), ("index", "events"), ("kind", "reason")]
        ),
    )
