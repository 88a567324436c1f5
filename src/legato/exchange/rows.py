"""A recording as rows: CSV and JSON lines, a row a chunk or a row a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from legato.recording import CHUNK_COLUMNS, KINDS, SCHEMA, Recording

# What a chunk's row repeats of its stream.
STREAM_KEYS = ("stream_id", "model", "worker", "phase", "status")
BATCH_ROWS = 10_000


def write_csv(recording: Recording, rows: str, sink: BinaryIO) -> None:
    """A stream's row leaves out its lists: CSV has none."""
    pa_csv.write_csv(chunk_table(recording) if rows == "chunks" else _scalars(recording), sink)


def write_jsonl(recording: Recording, rows: str, sink: BinaryIO) -> None:
    table = chunk_table(recording) if rows == "chunks" else recording.table
    sink.writelines(_lines(table))


def chunk_table(recording: Recording) -> pa.Table:
    """A row a chunk, in the order of arrival within each stream."""
    stream = pa.array(recording.stream_of_chunk)
    columns = {name: recording.table.column(name).take(stream) for name in STREAM_KEYS}
    first = recording.offsets[:-1][recording.stream_of_chunk]
    columns["chunk"] = pa.array(np.arange(len(recording.arrival_ns)) - first)
    sent_ns = recording.ints("sent_ns", 0)[recording.stream_of_chunk]
    columns["at_ns"] = pa.array(sent_ns + recording.arrival_ns)
    for name in CHUNK_COLUMNS:
        if name == "kind":
            names = np.asarray(KINDS, dtype=object)
            columns[name] = pa.array(names[recording.kind].tolist(), pa.string())
        else:
            columns[name] = pa.array(getattr(recording, name))
    return pa.table(columns)


def _scalars(recording: Recording) -> pa.Table:
    return recording.table.select([c.name for c in SCHEMA if not pa.types.is_list(c.type)])


def _lines(table: pa.Table) -> Iterator[bytes]:
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        for row in batch.to_pylist():
            yield json.dumps(row, separators=(",", ":"), allow_nan=False).encode() + b"\n"
