"""The folder of a run becomes one recording, and reads the same where it never got that far."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from scripted import DONE, LAST_CHUNK, STREAM_HEAD, chunked, content

import legato
from legato.errors import RecordingError
from legato.recording import Recording
from legato.stamps import Anchor
from legato.wire import folder as folders
from legato.wire import spool
from legato.wire.spool import HEADER_BYTES, Spool

MS = 1_000_000
EPOCH = 1_700_000_000_000_000_000
ANSWER = STREAM_HEAD + chunked(content("a"), DONE) + LAST_CHUNK


def plan(workers: int = 1, warmup: int = 0) -> dict[str, Any]:
    return {
        "meta": {"settings": {"warmup": warmup}, "load": {"started_ns": EPOCH}},
        "decoding": {
            "api": "chat",
            "target": "http://127.0.0.1/v1",
            "model": "m",
            "epoch_offset_ns": EPOCH,
            "workers": workers,
            "sampling": None,
            "tokenizer": None,
            "keep_text": False,
            "redaction": {"salt": "", "digests": []},
        },
    }


def work(
    folder: Path,
    worker: int,
    *spans: tuple[int, int],
    drain: int | None = None,
    dies: bool = False,
) -> None:
    """A worker's capture: streams that were sent and ended at these milliseconds."""
    writer = Spool(folder, worker, 8 * spool.READ_BYTES)
    writer.append_anchor(Anchor(0, EPOCH, 40))
    for number, (sent, ended) in enumerate(spans):
        times = {"scheduled_ns": sent * MS, "sent_ns": sent * MS}
        writer.append(spool.OPEN, number, times)
        start = writer.position + HEADER_BYTES
        writer.map[start : start + len(ANSWER)] = ANSWER
        writer.commit_read(number, len(ANSWER), 1, EPOCH + ended * MS, ended * MS, sent * MS)
        if not (dies and number == len(spans) - 1):
            writer.append(spool.END, number, {"status": "ok"})
    writer.append_anchor(Anchor(10**12, EPOCH, 60))
    if not dies:
        words = {"cpu_ns": 5 * MS, "wall_ns": 10 * MS, "retried": 1}
        drain_ns = None if drain is None else drain * MS
        writer.append(spool.WORKER, 0, {"drain_ns": drain_ns, **words})
    writer.close()


def by_sent(recording: Recording, column: str) -> list[Any]:
    order = recording.ints("sent_ns").argsort(kind="stable")
    return [recording.table.column(column)[int(row)].as_py() for row in order]


def test_a_finished_run_is_one_file_and_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    folder = folders.create(out, plan())
    assert folder.stat().st_mode & 0o777 == 0o700
    work(folder, 0, (1, 5), (2, 6))
    folders.finish(folder, out, partial=False)
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]
    recording = legato.load(out)
    assert recording.strings("status").tolist() == ["ok", "ok"]
    assert recording.meta["partial"] is False
    assert recording.meta["clock"]["anchor_width_ns"] == 40
    assert recording.meta["load"] == {
        "started_ns": EPOCH,
        "drain_ns": None,
        "lost_streams": 0,
        "workers_lost": 0,
        "cpu_share": 0.5,
        "cpu_ns": 5 * MS,
        "retried": 1,
    }


def test_an_unfinished_folder_reads_as_its_recording_would_and_is_left_alone(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run.parquet"
    folder = folders.create(out, plan())
    work(folder, 0, (1, 5), (2, 6))
    before = sorted(path.name for path in folder.iterdir())
    unfinished = legato.load(folder)
    assert sorted(path.name for path in folder.iterdir()) == before
    folders.finish(folder, out, partial=True)
    finished = legato.load(out)
    assert unfinished.table.equals(finished.table)
    assert unfinished.meta["partial"] is True
    assert {"schema": 1, **unfinished.meta} == finished.meta


def test_the_streams_of_all_workers_are_in_it_under_ids_of_their_own(tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    folder = folders.create(out, plan(workers=2))
    work(folder, 0, (1, 5), (2, 6), drain=30)
    work(folder, 1, (3, 7), drain=20)
    folders.finish(folder, out, partial=False)
    recording = legato.load(out)
    assert sorted(recording.ints("stream_id").tolist()) == [0, 1, 2]
    assert by_sent(recording, "worker") == [0, 0, 1]
    assert recording.meta["load"]["drain_ns"] == EPOCH + 20 * MS
    assert recording.meta["load"]["retried"] == 2


def test_in_flight_counts_the_streams_open_at_each_send_over_all_workers(tmp_path: Path) -> None:
    folder = folders.create(tmp_path / "run.parquet", plan(workers=2))
    work(folder, 0, (1, 10), (4, 6))
    work(folder, 1, (2, 5), (7, 8))
    recording = legato.load(folder)
    assert by_sent(recording, "sent_ns") == [EPOCH + at * MS for at in (1, 2, 4, 7)]
    assert by_sent(recording, "in_flight") == [1, 2, 3, 2]


def test_the_first_requests_are_warm_up_and_those_that_outlast_the_drain_cool_down(
    tmp_path: Path,
) -> None:
    folder = folders.create(tmp_path / "run.parquet", plan(warmup=2))
    work(folder, 0, (1, 5), (2, 6), (3, 8), (4, 12), drain=10)
    assert by_sent(legato.load(folder), "phase") == ["warmup", "warmup", "steady", "cooldown"]


def test_a_worker_that_died_loses_only_what_it_had_in_flight(tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    folder = folders.create(out, plan(workers=2))
    work(folder, 0, (1, 5), (2, 6), (3, 7), dies=True)
    work(folder, 1, (1, 9))
    folders.finish(folder, out, partial=False)
    recording = legato.load(out)
    assert sorted(recording.strings("status").tolist()) == ["aborted", "ok", "ok", "ok"]
    assert recording.meta["partial"] is True
    assert recording.meta["load"]["lost_streams"] == 1
    assert recording.meta["load"]["workers_lost"] == 1


def test_a_run_that_died_before_its_first_stream_is_an_empty_recording(tmp_path: Path) -> None:
    folder = folders.create(tmp_path / "run.parquet", plan())
    assert len(legato.load(folder)) == 0
    work(folder, 0)
    assert len(legato.load(folder)) == 0
    folders.finish(folder, tmp_path / "run.parquet", partial=True)
    assert len(legato.load(tmp_path / "run.parquet")) == 0


def test_a_folder_left_by_an_earlier_run_is_not_overwritten(tmp_path: Path) -> None:
    folders.create(tmp_path / "run.parquet", plan())
    with pytest.raises(RecordingError, match=r"run\.parquet\.partial is left from an earlier run"):
        folders.create(tmp_path / "run.parquet", plan())


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RecordingError, match=r"cannot write .*Permission denied"):
        folders.create(tmp_path / "run.parquet", plan())


def test_a_place_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"cannot write .*No such file or directory"):
        folders.create(tmp_path / "no" / "run.parquet", plan())


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"meta":{}}'])
def test_a_plan_that_cannot_be_read_is_told_in_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / folders.PLAN).write_text(text)
    with pytest.raises(RecordingError, match=r"plan\.json cannot be read"):
        legato.load(tmp_path)
