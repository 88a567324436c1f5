"""A file is judged before it is believed: what is wrong with it is one sentence that names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from legato.errors import RecordingError
from legato.reading import read
from legato.recording import CONTENT, META_KEY, SCHEMA, Recording, Stream, table_of


def made(number: int = 0) -> Stream:
    return Stream(
        stream_id=number,
        scheduled_ns=0,
        ended_ns=9,
        status="ok",
        sent_ns=1,
        arrival_ns=[1, 2],
        lag_ns=[0, 0],
        early_ns=[0, 0],
        read_index=[0, 1],
        segments=[1, 1],
        tokens=[1, 1],
        kind=[CONTENT, CONTENT],
        flags=[8, 8],
    )


def written(path: Path, table: pa.Table, meta: Any = None) -> Path:
    """`table` as another program would write it, with our metadata."""
    document = json.dumps({"schema": 1, **(meta or {})}).encode()
    pq.write_table(table.replace_schema_metadata({META_KEY: document}), path)
    return path


def with_column(name: str, values: list[Any], kind: pa.DataType) -> pa.Table:
    table = table_of([made()])
    at = table.schema.get_field_index(name)
    return table.set_column(at, name, pa.array(values, kind))


INTS, WORDS = pa.list_(pa.int64()), pa.list_(pa.string())
# column, what its one row holds, as which type, and words of the sentence
WRONG: dict[str, tuple[str, list[Any], pa.DataType, str]] = {
    "an unknown kind": ("kind", [["content", "song"]], WORDS, "'kind' has 'song'"),
    "a kind that is no string": ("kind", [[True, True]], pa.list_(pa.bool_()), "'kind'"),
    "kinds that are no lists": ("kind", [7], pa.int64(), "'kind' holds int64"),
    "a null list": ("arrival_ns", [None], INTS, "'arrival_ns' has a row without a list"),
    "a null list of kinds": ("kind", [None], WORDS, "'kind' has a row without a list"),
    "a null in a list": ("lag_ns", [[1, None]], INTS, "'lag_ns' has a list with a value missing"),
    "a short list": ("lag_ns", [[1]], INTS, "'lag_ns' has a list that is not as long"),
    "a short list of kinds": ("kind", [["content"]], WORDS, "'kind' has a list that is not as"),
    "a long text": ("text", [["a", "b", "c"]], WORDS, "'text' has a list that is not as long"),
    "words for times": ("arrival_ns", [["a", "b"]], WORDS, "'arrival_ns' holds list<"),
    "a number for a list": ("arrival_ns", [7], pa.int64(), "'arrival_ns' holds int64"),
    "a list for a number": ("sent_ns", [[1]], INTS, "'sent_ns' holds list<"),
    "a number out of range": ("rtt_us", [2**40], pa.int64(), "'rtt_us' holds int64, not int32"),
    "no end": ("ended_ns", [None], pa.int64(), "'ended_ns' has a row without a value"),
    "no status": ("status", [None], pa.string(), "'status' has a row without a value"),
    "an unknown status": ("status", ["fine"], pa.string(), "'status' has 'fine'; known are ok"),
    "an unknown phase": ("phase", ["dawn"], pa.string(), "'phase' has 'dawn'"),
    "fewer tokens than none": ("tokens", [[-1, 1]], INTS, "'tokens' has a value below 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_column_that_no_recording_has_is_named(case: str, tmp_path: Path) -> None:
    name, values, kind, words = WRONG[case]
    path = written(tmp_path / "run.parquet", with_column(name, values, kind))
    with pytest.raises(RecordingError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path} is not a readable recording: its column ")
    assert words in str(caught.value)


@pytest.mark.parametrize("section", ["settings", "host", "calibration", "clock", "load"])
@pytest.mark.parametrize("value", [[], ["a"], "a", 7], ids=repr)
def test_a_section_of_the_metadata_that_is_no_object_is_named(
    section: str, value: Any, tmp_path: Path
) -> None:
    path = written(tmp_path / "run.parquet", table_of([made()]), {section: value})
    with pytest.raises(RecordingError, match=f"'{section}' in its metadata is not an object"):
        read(path)


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"settings": {"concurrency": "ten"}}, "'concurrency' of 'settings'"),
        ({"clock": {"steps": [1]}}, "'steps' of 'clock'"),
        ({"load": {"drain_ns": {}}}, "'drain_ns' of 'load'"),
        ({"calibration": {"floor_us": {"p99": "a"}}}, "'p99' of 'floor_us'"),
        ({"calibration": {"floor_us": [1, 2]}}, "'floor_us' in its metadata is not an object"),
        ({"parts": "ab"}, "'parts' in its metadata is not a list of objects"),
        ({"parts": [7]}, "'parts' in its metadata is not a list of objects"),
        ({"parts": [{"rows": 1, "load": []}]}, "'load' in its metadata is not an object"),
        ({"parts": [{}]}, "'parts' in its metadata do not add up to its 1 streams"),
        ({"parts": [{"rows": 1}, {"rows": 1}]}, "do not add up to its 1 streams"),
    ],
)
def test_what_the_metadata_cannot_hold_is_named(
    meta: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "run.parquet", table_of([made()]), meta)
    with pytest.raises(RecordingError, match=words):
        read(path)


def test_metadata_nested_without_end_is_not_readable(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    table = table_of([made()]).replace_schema_metadata({META_KEY: b'{"a":' * 100_000})
    pq.write_table(table, path)
    with pytest.raises(RecordingError, match="is not a readable recording"):
        read(path)


def test_a_number_that_json_does_not_have_is_read_as_unknown(tmp_path: Path) -> None:
    path = written(tmp_path / "run.parquet", table_of([made()]), {"load": {"cpu_share": 1e400}})
    assert read(path).meta["load"] == {"cpu_share": None}


def wider(table: pa.Table) -> pa.Table:
    """As programs write that know only 64-bit integers and large strings."""

    def widened(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_list(kind):
            return pa.large_list(widened(kind.value_type))
        if pa.types.is_integer(kind):
            return pa.int64()
        return kind if pa.types.is_boolean(kind) else pa.large_string()

    columns = {
        field.name: pa.array(table.column(field.name).to_pylist(), widened(field.type))
        for field in SCHEMA
    }
    return pa.table(columns)


@pytest.mark.parametrize(
    "change", [wider, lambda table: table.select(sorted(SCHEMA.names))], ids=["types", "order"]
)
def test_a_recording_that_another_program_wrote_again_reads_the_same(
    change: Callable[[pa.Table], pa.Table], tmp_path: Path
) -> None:
    table = table_of([made(1), made(2)])
    again = read(written(tmp_path / "run.parquet", change(table)))
    assert again.table.schema.equals(SCHEMA)
    assert again.table.to_pylist() == table.to_pylist()
    assert again.kind.tolist() == [CONTENT] * 4


# --- folders ----------------------------------------------------------------------------------


def test_a_folder_is_its_own_files_and_those_of_its_sub_folders(tmp_path: Path) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    Recording.from_streams([made(1)]).write(tmp_path / "a.parquet")
    Recording.from_streams([made(2)]).write(tmp_path / "sub" / "b.parquet")
    Recording.from_streams([made(3)]).write(tmp_path / "sub" / "deep" / "c.parquet")
    assert read(tmp_path).ints("stream_id").tolist() == [1, 2]


def test_what_an_unfinished_run_left_is_not_part_of_another_recording(tmp_path: Path) -> None:
    (tmp_path / "b.parquet.partial").mkdir()
    Recording.from_streams([made(1)]).write(tmp_path / "a.parquet")
    Recording.from_streams([made(2)]).write(tmp_path / "b.parquet.partial" / "part-000.parquet")
    assert read(tmp_path).ints("stream_id").tolist() == [1]


def test_a_foreign_file_in_a_folder_is_named(tmp_path: Path) -> None:
    Recording.from_streams([made(1)]).write(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "b.parquet")
    with pytest.raises(RecordingError, match=r"b\.parquet is a Parquet file but not a recording"):
        read(tmp_path)
