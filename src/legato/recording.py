"""The recording: a row a stream, list columns a chunk, Parquet in and out.

It is the only joint between measuring and looking. It knows nothing of sockets, of load or of
formulas. Times are integer nanoseconds: `*_ns` scalars are epoch nanoseconds of one anchored
monotonic clock, `arrival_ns` counts from the stream's `sent_ns`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from legato import joined
from legato.errors import RecordingError

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
META_KEY = b"legato"

KINDS = ("role", "content", "reasoning", "tool", "finish", "usage", "done", "other")
ROLE, CONTENT, REASONING, TOOL, FINISH, USAGE, DONE, OTHER = range(len(KINDS))

HAS_FINISH = 1  # the chunk names a finish reason
HAS_USAGE = 2  # the chunk carries usage
EMPTY = 4  # the chunk has a delta without any text
HAS_CHOICES = 8  # the chunk's `choices` is not empty
USER_CLOCK = 16  # the kernel gave no usable stamp: `arrival_ns` is the time of the read

STATUSES = ("ok", "http_error", "timeout", "aborted", "protocol_error", "not_streaming")
PHASES = ("warmup", "steady", "cooldown")
TOKEN_SOURCES = ("chunk_usage", "token_ids", "logprobs", "tokenizer", "usage_spread", "chunks")

Ints = npt.NDArray[np.int64]


def _list(element: pa.DataType) -> pa.DataType:
    # Parquet names a list's values "element"; naming them so here too keeps schemas equal.
    return pa.list_(pa.field("element", element))


_SYMBOL = pa.dictionary(pa.int32(), pa.string())

SCHEMA = pa.schema(
    [
        ("stream_id", pa.int64()),
        ("session_id", pa.string()),
        ("turn", pa.int32()),
        ("target", pa.string()),
        ("model", pa.string()),
        ("api", pa.string()),
        ("worker", pa.int32()),
        ("phase", pa.string()),
        ("response_id", pa.string()),
        ("scheduled_ns", pa.int64()),
        ("sent_ns", pa.int64()),
        ("first_byte_ns", pa.int64()),
        ("ended_ns", pa.int64()),
        ("reused", pa.bool_()),
        ("connect_ns", pa.int64()),
        ("tls_ns", pa.int64()),
        ("idle_before_ns", pa.int64()),
        ("remote_addr", pa.string()),
        ("retransmits", pa.int32()),
        ("rtt_us", pa.int32()),
        ("status", pa.string()),
        ("http_status", pa.int32()),
        ("error", pa.string()),
        ("retry_after", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("cached_tokens", pa.int32()),
        ("token_source", pa.string()),
        ("text_tokens", pa.int32()),
        ("retokens", _list(pa.int32())),
        ("sampling", pa.string()),
        ("arrival_ns", _list(pa.int64())),
        ("lag_ns", _list(pa.int64())),
        ("early_ns", _list(pa.int64())),
        ("read_index", _list(pa.int32())),
        ("segments", _list(pa.int32())),
        ("tokens", _list(pa.int32())),
        ("kind", _list(_SYMBOL)),
        ("flags", _list(pa.uint8())),
        ("text", _list(pa.string())),
        ("in_flight", pa.int32()),
    ]
)

# Every chunk column has one entry a chunk; `retokens` and `text` may be absent as a whole.
CHUNK_COLUMNS = (
    "arrival_ns",
    "lag_ns",
    "early_ns",
    "read_index",
    "segments",
    "tokens",
    "kind",
    "flags",
)


@dataclass(slots=True)
class Stream:
    """One streamed response as it was observed; the row a capture decodes to."""

    stream_id: int
    scheduled_ns: int
    ended_ns: int
    status: str
    target: str = ""
    model: str = ""
    api: str = "chat"
    worker: int = 0
    phase: str = "steady"
    session_id: str | None = None
    turn: int | None = None
    response_id: str | None = None
    sent_ns: int | None = None
    first_byte_ns: int | None = None
    reused: bool = False
    connect_ns: int | None = None
    tls_ns: int | None = None
    idle_before_ns: int | None = None
    remote_addr: str | None = None
    retransmits: int | None = None
    rtt_us: int | None = None
    http_status: int | None = None
    error: str | None = None
    retry_after: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    token_source: str = "chunks"
    text_tokens: int | None = None
    retokens: Sequence[int] | None = None
    sampling: str | None = None
    in_flight: int = 1
    arrival_ns: Sequence[int] | Ints = field(default_factory=list)
    lag_ns: Sequence[int] | Ints = field(default_factory=list)
    early_ns: Sequence[int] | Ints = field(default_factory=list)
    read_index: Sequence[int] | Ints = field(default_factory=list)
    segments: Sequence[int] | Ints = field(default_factory=list)
    tokens: Sequence[int] | Ints = field(default_factory=list)
    kind: Sequence[int] | Ints = field(default_factory=list)
    flags: Sequence[int] | Ints = field(default_factory=list)
    text: Sequence[str] | None = None


_STREAM_FIELDS = tuple(f.name for f in fields(Stream))


@dataclass(frozen=True)
class Recording:
    """Streams with numpy views of their columns.

    `table` has the columns of `SCHEMA`; `meta` is the JSON written into the file: settings,
    schedule, host facts, versions, calibration. Chunk columns are flat arrays: the chunks of
    stream `i` are `[offsets[i]:offsets[i + 1]]`.
    """

    table: pa.Table
    meta: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    # --- views ------------------------------------------------------------------------------

    @cached_property
    def offsets(self) -> Ints:
        """Where each stream's chunks start in the flat chunk arrays; one more than streams."""
        lengths = np.asarray(pc.list_value_length(self._column("arrival_ns")), np.int64)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])

    @cached_property
    def arrival_ns(self) -> Ints:
        return self._flat("arrival_ns")

    @cached_property
    def lag_ns(self) -> Ints:
        return self._flat("lag_ns")

    @cached_property
    def early_ns(self) -> Ints:
        return self._flat("early_ns")

    @cached_property
    def read_index(self) -> Ints:
        return self._flat("read_index")

    @cached_property
    def segments(self) -> Ints:
        return self._flat("segments")

    @cached_property
    def tokens(self) -> Ints:
        return self._flat("tokens")

    @cached_property
    def flags(self) -> Ints:
        return self._flat("flags")

    @cached_property
    def kind(self) -> Ints:
        """Per chunk, an index into `KINDS`."""
        values = self._column("kind").flatten()
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        codes = np.asarray([KINDS.index(k) for k in values.dictionary.to_pylist()], np.int64)
        indices = np.asarray(values.indices, np.int64)
        return codes[indices] if len(codes) else indices

    @cached_property
    def stream_of_chunk(self) -> Ints:
        """Per chunk, the row of its stream."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))

    def ints(self, name: str, missing: int = -1) -> Ints:
        """A scalar integer column; a null is `missing`."""
        return np.asarray(pc.fill_null(self._column(name).cast(pa.int64()), missing), np.int64)

    def strings(self, name: str) -> npt.NDArray[np.object_]:
        """A scalar string column; a null is the empty string."""
        column = pc.fill_null(self._column(name).cast(pa.string()), "")
        return np.asarray(column.to_pylist(), dtype=object)

    def stream(self, row: int) -> Stream:
        """One stream as Python values."""
        values = self.table.slice(row, 1).to_pylist()[0]
        values["kind"] = [KINDS.index(k) for k in values["kind"]]
        return Stream(**{name: values[name] for name in _STREAM_FIELDS})

    def __iter__(self) -> Iterator[Stream]:
        return (self.stream(row) for row in range(len(self)))

    def select(self, mask: npt.NDArray[np.bool_]) -> Recording:
        """The streams where `mask` is true, with the same metadata but for the parts."""
        meta = {name: value for name, value in self.meta.items() if name != joined.PARTS}
        return Recording(self.table.filter(pa.array(mask)), meta)

    def parts(self) -> list[Recording]:
        """The recordings this one was joined from; itself where it was not."""
        parts = joined.parts_of(self.meta, len(self))
        starts = np.cumsum([0, *(part[joined.ROWS] for part in parts)])
        return [
            Recording(self.table.slice(start, part[joined.ROWS]).combine_chunks(), part)
            for start, part in zip(starts.tolist(), parts, strict=False)
        ]

    def _column(self, name: str) -> Any:
        column = self.table.column(name)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def _flat(self, name: str) -> Ints:
        return np.asarray(self._column(name).flatten().cast(pa.int64()), np.int64)

    # --- in and out -------------------------------------------------------------------------

    @classmethod
    def from_streams(
        cls, streams: Iterable[Stream], meta: Mapping[str, Any] | None = None
    ) -> Recording:
        return cls(table_of(list(streams)), dict(meta or {}))

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas frame (extra `pandas`)."""
        try:
            return self.table.to_pandas()
        except ImportError as error:
            pip = f"{shlex.quote(sys.executable)} -m pip install pandas"
            raise RecordingError(
                f"to_pandas() needs pandas, which is not installed: {pip}"
            ) from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write one Parquet file, atomically: the file is whole or not there."""
        with RecordingWriter(path, self.meta) as writer:
            writer.write(self.table)


def table_of(streams: Sequence[Stream]) -> pa.Table:
    """Streams as an Arrow table of `SCHEMA`."""
    columns = []
    for column in SCHEMA:
        values: list[Any] = [getattr(stream, column.name) for stream in streams]
        if column.name == "kind":
            columns.append(_kind_array(values))
        else:
            columns.append(pa.array(values, column.type))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _kind_array(kinds: Sequence[Sequence[int]]) -> pa.ListArray:
    offsets = np.cumsum([0, *(len(k) for k in kinds)])
    flat = np.concatenate([np.asarray(k, np.int32) for k in kinds] or [np.zeros(0, np.int32)])
    values = pa.DictionaryArray.from_arrays(pa.array(flat, pa.int32()), pa.array(KINDS))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), values, type=SCHEMA.field("kind").type
    )


class RecordingWriter:
    """Writes row groups into a temporary file beside `path` and renames it when it is whole."""

    def __init__(self, path: str | os.PathLike[str], meta: Mapping[str, Any]) -> None:
        self.path = Path(path)
        document = json.dumps({"schema": SCHEMA_VERSION, **meta}, separators=(",", ":"))
        schema = SCHEMA.with_metadata({META_KEY: document.encode()})
        try:
            handle, name = tempfile.mkstemp(
                prefix=f".{self.path.name}.", suffix=".tmp", dir=self.path.parent
            )
        except OSError as error:
            raise RecordingError(f"cannot write {self.path}: {error.strerror}") from error
        os.close(handle)
        self._temporary = Path(name)
        # Stamps are nearly random in their low bits: bit-packed differences are what is small.
        # `kind` and the other small columns take dictionaries, which zstd then folds to nothing.
        delta = ["arrival_ns", "lag_ns", "early_ns", "read_index"]
        self._writer = pq.ParquetWriter(
            name,
            schema,
            compression="zstd",
            use_dictionary=[
                f"{c.name}.list.element" if pa.types.is_list(c.type) else c.name
                for c in SCHEMA
                if c.name not in delta and not c.name.endswith("_ns")
            ],
            column_encoding={f"{name}.list.element": "DELTA_BINARY_PACKED" for name in delta},
        )

    def write(self, table: pa.Table) -> None:
        if table.num_rows:
            self._guard(self._writer.write_table, table.cast(self._writer.schema))

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            self._guard(self._writer.close)
            if error is None:
                self._guard(self._publish)
        finally:
            self._temporary.unlink(missing_ok=True)

    def _publish(self) -> None:
        # mkstemp gives 0600; a finished recording has the permissions of any new file.
        umask = os.umask(0)
        os.umask(umask)
        self._temporary.chmod(0o666 & ~umask)
        self._temporary.replace(self.path)

    def _guard(self, action: Any, *arguments: Any) -> None:
        try:
            action(*arguments)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._temporary.unlink()
            reason = error.strerror or str(error)
            raise RecordingError(f"cannot write {self.path}: {reason}") from error


def concatenate(recordings: Sequence[Recording]) -> Recording:
    """One recording of all streams; each one's metadata is kept beside what they share."""
    if not recordings:
        raise RecordingError("there is no recording to concatenate")
    if len(recordings) == 1:
        return recordings[0]
    table = pa.concat_tables([recording.table for recording in recordings])
    parts = [part for r in recordings for part in joined.parts_of(r.meta, len(r))]
    return Recording(unified(table), joined.combined(parts))


def unified(table: pa.Table) -> pa.Table:
    """One chunk a column, one dictionary for `kind`."""
    return table.unify_dictionaries().combine_chunks()
