"""What is written is what is read; a file is whole or not there."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import legato
from legato.errors import RecordingError
from legato.reading import read
from legato.recording import (
    CHUNK_COLUMNS,
    CONTENT,
    DONE,
    KINDS,
    META_KEY,
    PHASES,
    ROLE,
    SCHEMA,
    STATUSES,
    TOKEN_SOURCES,
    Recording,
    RecordingWriter,
    Stream,
    concatenate,
    table_of,
)

int64s = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**31 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    size = draw(st.integers(0, 5))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    return Stream(
        stream_id=draw(int64s),
        scheduled_ns=draw(int64s),
        ended_ns=draw(int64s),
        status=draw(st.sampled_from(STATUSES)),
        target=draw(texts),
        phase=draw(st.sampled_from(PHASES)),
        session_id=draw(st.none() | texts),
        turn=draw(st.none() | counts),
        response_id=draw(st.none() | texts),
        sent_ns=draw(st.none() | int64s),
        first_byte_ns=draw(st.none() | int64s),
        reused=draw(st.booleans()),
        idle_before_ns=draw(st.none() | int64s),
        error=draw(st.none() | texts),
        output_tokens=draw(st.none() | counts),
        token_source=draw(st.sampled_from(TOKEN_SOURCES)),
        retokens=draw(st.none()) if draw(st.booleans()) else column(counts),
        text=draw(st.none()) if draw(st.booleans()) else column(texts),
        arrival_ns=column(int64s),
        lag_ns=column(int64s),
        early_ns=column(int64s),
        read_index=column(counts),
        segments=column(counts),
        tokens=column(counts),
        kind=column(st.integers(0, len(KINDS) - 1)),
        flags=column(st.integers(0, 255)),
    )


metas = st.dictionaries(texts.filter(lambda key: key != "schema"), st.none() | texts | counts)


def made(number: int = 0, kinds: tuple[int, ...] = (ROLE, CONTENT, DONE)) -> Stream:
    size = len(kinds)
    return Stream(
        stream_id=number,
        scheduled_ns=1,
        ended_ns=2,
        status="ok",
        sent_ns=1,
        arrival_ns=list(range(size)),
        lag_ns=[1] * size,
        early_ns=[0] * size,
        read_index=list(range(size)),
        segments=[1] * size,
        tokens=[int(kind == CONTENT) for kind in kinds],
        kind=list(kinds),
        flags=[0] * size,
    )


@settings(deadline=None)
@given(written=st.lists(streams(), max_size=4), meta=metas)
def test_streams_and_metadata_come_back_as_they_were_written(
    written: list[Stream], meta: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / "run.parquet"
    Recording.from_streams(written, meta).write(path)
    found = legato.load(path)
    assert list(found) == written
    assert found.meta == {"schema": 1, **meta}


@settings(deadline=None)
@given(st.lists(streams(), max_size=4))
def test_the_flat_views_hold_every_stream_between_its_offsets(written: list[Stream]) -> None:
    recording = Recording.from_streams(written)
    offsets = recording.offsets
    assert len(offsets) == len(written) + 1
    for name in CHUNK_COLUMNS:
        flat = getattr(recording, name)
        assert flat.dtype == np.int64
        for row, stream in enumerate(written):
            assert flat[offsets[row] : offsets[row + 1]].tolist() == list(getattr(stream, name))
    rows = [row for row, stream in enumerate(written) for _ in stream.kind]
    assert recording.stream_of_chunk.tolist() == rows


@settings(deadline=None)
@given(st.lists(streams(), max_size=3), st.lists(streams(), max_size=3))
def test_concatenated_recordings_hold_the_streams_of_both_in_order(
    first: list[Stream], second: list[Stream]
) -> None:
    both = concatenate(
        [Recording.from_streams(first, {"a": 1}), Recording.from_streams(second, {"a": 2})]
    )
    assert list(both) == [*first, *second]
    assert both.kind.tolist() == [kind for stream in (*first, *second) for kind in stream.kind]
    assert [part["a"] for part in both.meta["parts"]] == [1, 2]
    assert [list(part) for part in both.parts()] == [first, second]


def test_recordings_read_from_files_with_different_kinds_concatenate(tmp_path: Path) -> None:
    Recording.from_streams([made(0, (DONE, CONTENT))]).write(tmp_path / "a.parquet")
    Recording.from_streams([made(1, (ROLE, DONE))]).write(tmp_path / "b.parquet")
    Recording.from_streams([made(2, ())]).write(tmp_path / "c.parquet")
    Recording.from_streams([]).write(tmp_path / "d.parquet")
    found = read(tmp_path)
    assert found.kind.tolist() == [DONE, CONTENT, ROLE, DONE]
    assert found.ints("stream_id").tolist() == [0, 1, 2]


def test_row_groups_with_different_kinds_read_as_one_table(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with RecordingWriter(path, {}) as writer:
        writer.write(table_of([made(0, (DONE, CONTENT))]))
        writer.write(table_of([made(1, (ROLE,)), made(2, ())]))
        writer.write(table_of([made(3, (CONTENT, ROLE))]))
    assert read(path).kind.tolist() == [DONE, CONTENT, ROLE, CONTENT, ROLE]


def test_an_empty_recording_is_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    Recording.from_streams([]).write(path)
    found = read(path)
    assert len(found) == 0
    assert found.offsets.tolist() == [0]
    assert len(found.kind) == len(found.arrival_ns) == len(found.ints("sent_ns")) == 0
    assert found.strings("status").tolist() == []


def test_select_keeps_the_chosen_streams_with_their_chunks() -> None:
    recording = Recording.from_streams([made(n, (CONTENT,) * n) for n in range(4)], {"a": 1})
    chosen = recording.select(np.asarray([False, True, False, True]))
    assert chosen.ints("stream_id").tolist() == [1, 3]
    assert chosen.offsets.tolist() == [0, 1, 4]
    assert chosen.arrival_ns.tolist() == [0, 0, 1, 2]
    assert chosen.meta == {"a": 1}


def test_missing_scalars_take_the_value_that_stands_for_missing() -> None:
    recording = Recording.from_streams([Stream(0, 1, 2, "aborted")])
    assert recording.ints("sent_ns").tolist() == [-1]
    assert recording.ints("output_tokens", missing=0).tolist() == [0]
    assert recording.strings("error").tolist() == [""]


def test_a_stream_has_exactly_the_columns_of_the_schema() -> None:
    assert {field.name for field in fields(Stream)} == set(SCHEMA.names)


def test_the_file_reads_as_plain_parquet_without_legato(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    Recording.from_streams([made(7)]).write(path)
    (row,) = pq.read_table(path).to_pylist()
    assert row["stream_id"] == 7
    assert row["arrival_ns"] == [0, 1, 2]
    assert row["kind"] == ["role", "content", "done"]
    assert pq.read_schema(path).names == SCHEMA.names


def test_the_table_goes_to_pandas_and_to_arrow() -> None:
    recording = Recording.from_streams([made(7)])
    frame = recording.to_pandas()
    assert frame["stream_id"].tolist() == [7]
    assert frame["kind"][0].tolist() == ["role", "content", "done"]
    assert recording.to_arrow().column_names == SCHEMA.names


def test_a_million_chunks_take_at_most_twelve_megabytes(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    chunks = 1000

    def stream(number: int) -> Stream:
        gaps_ns = random.normal(10e6, 50e3, chunks).astype(np.int64)
        merged = random.random(chunks) < 0.02
        return Stream(
            stream_id=number,
            scheduled_ns=number * 10**7,
            ended_ns=number * 10**7 + 10**10,
            status="ok",
            target="http://127.0.0.1:8000/v1",
            response_id=f"chatcmpl-{number:08x}",
            sent_ns=number * 10**7 + int(random.integers(10**6)),
            arrival_ns=np.cumsum(gaps_ns),
            lag_ns=random.gamma(2, 20e3, chunks).astype(np.int64),
            early_ns=np.where(merged, random.integers(0, 10**6, chunks), 0),
            read_index=np.arange(chunks) - np.cumsum(merged),
            segments=1 + merged.astype(np.int64),
            tokens=np.ones(chunks, np.int64),
            kind=np.full(chunks, CONTENT),
            flags=np.full(chunks, 8),
        )

    path = tmp_path / "run.parquet"
    with RecordingWriter(path, {}) as writer:
        for part in range(4):
            writer.write(table_of([stream(part * 250 + n) for n in range(250)]))
    assert path.stat().st_size <= 12_000_000
    assert int(read(path).tokens.sum()) == 1_000_000


# --- atomic -----------------------------------------------------------------------------------


def test_a_finished_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    Recording.from_streams([made()]).write(path)
    (tmp_path / "other").touch()
    mode = stat.S_IMODE(path.stat().st_mode)
    assert mode == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(OverflowError),
        RecordingWriter(tmp_path / "run.parquet", {}) as writer,
    ):
        writer.write(table_of([made(2**63)]))
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_whole_while_others_read_it(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    Recording.from_streams([made(1)]).write(path)
    old = path.read_bytes()
    with path.open("rb") as reader:
        Recording.from_streams([made(2)]).write(path)
        assert reader.read() == old
    assert read(path).ints("stream_id").tolist() == [2]


KILLED = """
import os, signal, sys
from legato.recording import RecordingWriter, Stream, table_of
with RecordingWriter(sys.argv[1], {}) as writer:
    for number in range(3):
        writer.write(table_of([Stream(number, 1, 2, "ok")]))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_writer_killed_in_the_middle_leaves_no_recording_and_an_old_one_untouched(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.parquet"
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode < 0
    assert not path.exists()
    with pytest.raises(RecordingError, match="without Parquet files"):
        read(tmp_path)
    Recording.from_streams([made(5)]).write(path)
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert read(path).ints("stream_id").tolist() == [5]


FULL = """
import resource, sys
from legato.errors import RecordingError
from legato.reading import read
from legato.recording import Recording, Stream
streams = [Stream(n, 1, 2, "ok", error=str(hash(str(n)) ** 3)) for n in range(2000)]
recording = Recording.from_streams(streams)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
try:
    recording.write(sys.argv[1])
except RecordingError as error:
    print(error)
"""


def test_a_full_disk_is_told_in_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    command = [sys.executable, "-c", FULL, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"cannot write {path}: ")
    assert list(tmp_path.iterdir()) == []


# --- what cannot be read or written -----------------------------------------------------------


def test_a_folder_that_does_not_exist_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"cannot write .*No such file or directory"):
        Recording.from_streams([made()]).write(tmp_path / "no" / "run.parquet")


def test_a_missing_recording_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"no such recording: .*run\.parquet"):
        read(tmp_path / "run.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all", os.urandom(5000)])
def test_a_file_that_is_no_parquet_is_not_a_readable_recording(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "run.parquet"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="is not a readable recording"):
        read(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_cut_recording_is_not_readable(share: float, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    Recording.from_streams([made(n) for n in range(20)]).write(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(RecordingError, match="is not a readable recording"):
        read(path)


def test_a_parquet_file_of_something_else_is_not_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(RecordingError, match="not a recording of legato"):
        read(path)


def test_a_recording_of_a_later_schema_is_refused_by_number(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    Recording.from_streams([made()], {"schema": 2}).write(path)
    with pytest.raises(RecordingError, match="has schema 2; this legato reads 1"):
        read(path)


@pytest.mark.parametrize("document", [b"[]", b"{", b"7", b"\xff"])
def test_metadata_that_is_no_object_is_not_readable(document: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    table = table_of([made()]).replace_schema_metadata({META_KEY: document})
    pq.write_table(table, path)
    with pytest.raises(RecordingError, match=r"run\.parquet is not a readable recording"):
        read(path)


def test_a_recording_that_lacks_a_column_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    table = table_of([made()]).drop_columns(["lag_ns"])
    pq.write_table(table.replace_schema_metadata({META_KEY: b'{"schema":1}'}), path)
    with pytest.raises(RecordingError, match="lacks the column 'lag_ns'"):
        read(path)


def test_a_folder_without_recordings_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="is a folder without Parquet files"):
        read(tmp_path)


def test_nothing_cannot_be_concatenated() -> None:
    with pytest.raises(RecordingError, match="no recording to concatenate"):
        concatenate([])
