"""Recordings read from files, and judged before they are believed: whatever is wrong with a file
is one sentence that names it, never a failure in some metric later."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from legato.errors import RecordingError
from legato.joined import PARTS, ROWS
from legato.recording import (
    CHUNK_COLUMNS,
    KINDS,
    META_KEY,
    PHASES,
    SCHEMA,
    SCHEMA_VERSION,
    STATUSES,
    Recording,
    concatenate,
    table_of,
    unified,
)

_NEVER_NULL = ("stream_id", "scheduled_ns", "ended_ns", "status", "phase", "in_flight")
_SYMBOLS = {"status": STATUSES, "phase": PHASES}
_SECTIONS = ("settings", "schedule", "host", "versions", "calibration", "clock", "load")

_NUMBERS = {
    "settings": ("concurrency", "rate", "requests", "duration_s", "warmup", "workers"),
    "clock": ("anchor_width_ns", "steps"),
    "load": ("started_ns", "ended_ns", "drain_ns", "lost_streams", "workers_lost", "cpu_share"),
    "floor_us": ("p50", "p99"),
}


def read(path: str | os.PathLike[str]) -> Recording:
    """Read a recording: a Parquet file, or a folder of them."""
    path = Path(path)
    if path.is_dir():
        return concatenate([_read_file(part) for part in _parts(path)])
    return _read_file(path)


def _parts(folder: Path) -> list[Path]:
    """The Parquet files of `folder` and of its sub-folders. No deeper: whoever names `/` did not
    mean the disk. What an unfinished run left is a recording of its own, not part of another."""
    try:
        found = sorted([*folder.glob("*.parquet"), *folder.glob("*/*.parquet")])
    except OSError as error:
        raise RecordingError(f"{folder} cannot be searched: {error.strerror}") from None
    parts = [part for part in found if part.parent == folder or part.parent.suffix != ".partial"]
    if not parts:
        raise RecordingError(f"{folder} is a folder without Parquet files")
    return parts


def _read_file(path: Path) -> Recording:
    try:
        schema = pq.read_schema(path)
        meta = _metadata(schema, path)
        if missing := [name for name in SCHEMA.names if name not in schema.names]:
            raise RecordingError(f"{path} lacks the column {missing[0]!r} of a recording")
        file = pq.ParquetFile(path, read_dictionary=_coded(path))
        # One by one: pyarrow cannot read dictionaries inside lists over several row groups.
        groups = [
            file.read_row_group(group, columns=SCHEMA.names) for group in range(file.num_row_groups)
        ]
        table = pa.concat_tables(map(_typed, groups)) if groups else table_of([])
        table = unified(table.replace_schema_metadata(None))
        _check(table)
        _check_parts(meta, table.num_rows)
    except FileNotFoundError:
        raise RecordingError(f"no such recording: {path}") from None
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        raise RecordingError(f"{path} is not a readable recording: {error}") from error
    return Recording(table, meta)


def _coded(path: Path) -> list[str]:
    """The columns read as dictionaries: a million kinds are a million bytes then, not strings."""
    columns = pq.read_metadata(path).schema
    paths = {columns.column(number).path for number in range(len(columns))}
    return [name for name in ("kind.list.element",) if name in paths]


def _metadata(schema: pa.Schema, path: Path) -> dict[str, Any]:
    document = (schema.metadata or {}).get(META_KEY)
    if document is None:
        raise RecordingError(f"{path} is a Parquet file but not a recording of legato")
    # A NaN would pass through every metric into JSON that no other program reads.
    meta = json.loads(document, parse_constant=lambda _: None)
    if not isinstance(meta, dict):
        raise ValueError("its metadata is not an object")
    if meta.get("schema") != SCHEMA_VERSION:
        raise RecordingError(
            f"{path} has schema {meta.get('schema')}; this legato reads {SCHEMA_VERSION}"
        )
    _check_sections(meta)
    return meta


def _check_sections(meta: dict[str, Any]) -> None:
    """Every section that metrics look into is an object, and what they count with a number."""
    for name in _SECTIONS:
        if not isinstance(meta.get(name), dict | None):
            raise ValueError(f"{name!r} in its metadata is not an object")
    calibration = meta.get("calibration") or {}
    if not isinstance(calibration.get("floor_us"), dict | None):
        raise ValueError("'floor_us' in its metadata is not an object")
    for name, keys in _NUMBERS.items():
        section = calibration.get(name) if name == "floor_us" else meta.get(name)
        for key in keys:
            if not isinstance((section or {}).get(key), int | float | None):
                raise ValueError(f"{key!r} of {name!r} in its metadata is not a number")


def _check_parts(meta: dict[str, Any], rows: int) -> None:
    """The recordings that this one was joined from are sound, and account for every stream."""
    parts = meta.get(PARTS)
    if parts is None:
        return
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise ValueError(f"{PARTS!r} in its metadata is not a list of objects")
    for part in parts:
        _check_sections(part)
    counts = [part.get(ROWS) for part in parts]
    if any(type(count) is not int or count < 0 for count in counts) or sum(counts) != rows:
        raise ValueError(f"{PARTS!r} in its metadata do not add up to its {rows} streams")


def _typed(table: pa.Table) -> pa.Table:
    """`table` with the columns of `SCHEMA`, in its order and types: a program that wrote it again
    may have chosen wider ones."""
    columns = []
    for wanted in SCHEMA:
        column = table.column(wanted.name)
        try:
            if wanted.name == "kind" and not column.type.equals(wanted.type):
                column = _symbols(column, wanted.type)
            columns.append(column.cast(wanted.type))
        except pa.ArrowException as error:
            raise ValueError(
                f"its column {wanted.name!r} holds {column.type}, not {wanted.type}"
            ) from error
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _symbols(column: pa.ChunkedArray, wanted: pa.ListType) -> pa.ChunkedArray:
    """Lists of plain strings as lists of symbols."""
    plain = column.cast(pa.list_(pa.string())).combine_chunks()
    values = plain.values.dictionary_encode()
    lists = pa.ListArray.from_arrays(plain.offsets, values, type=wanted, mask=plain.is_null())
    return pa.chunked_array([lists])


def _check(table: pa.Table) -> None:
    """Raise ValueError where a value is one that no recording holds."""
    for name in _NEVER_NULL:
        if table.column(name).null_count:
            raise ValueError(f"its column {name!r} has a row without a value")
    for name, known in _SYMBOLS.items():
        _check_known(name, table.column(name).unique().to_pylist(), known)
    if not table.num_rows:
        return
    sizes = np.asarray(pc.list_value_length(table.column("arrival_ns")))
    for name in (*CHUNK_COLUMNS, "text", "retokens"):
        _check_lists(table.column(name).chunk(0), name, sizes)
    _check_known("kind", table.column("kind").chunk(0).values.dictionary.to_pylist(), KINDS)
    if (pc.min(table.column("tokens").chunk(0).flatten()).as_py() or 0) < 0:
        raise ValueError("its column 'tokens' has a value below 0")


def _check_known(name: str, values: list[Any], known: tuple[str, ...]) -> None:
    if strange := [value for value in values if value not in known]:
        raise ValueError(f"its column {name!r} has {strange[0]!r}; known are {', '.join(known)}")


def _check_lists(column: pa.ListArray, name: str, sizes: Any) -> None:
    """One value a chunk in every row; `text` and `retokens` may be absent from a row."""
    if name in CHUNK_COLUMNS and column.null_count:
        raise ValueError(f"its column {name!r} has a row without a list")
    if column.flatten().null_count:
        raise ValueError(f"its column {name!r} has a list with a value missing")
    lengths = pc.fill_null(pc.list_value_length(column), -1)
    differs = (np.asarray(lengths) != sizes) & np.asarray(column.is_valid())
    if differs.any():
        raise ValueError(
            f"its column {name!r} has a list that is not as long as 'arrival_ns' in row"
            f" {int(differs.argmax())}"
        )
