"""Whatever ends the writer, every whole record of its capture can be read."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.errors import RecordingError
from legato.stamps import Anchor
from legato.wire import spool
from legato.wire.spool import HEADER_BYTES, READ_BYTES, Spool, records, workers

SMALL_BYTES = 4 * (READ_BYTES + 2 * HEADER_BYTES)  # room for a handful of records


def commit(writer: Spool, stream: int, payload: bytes, segments: int = 1) -> None:
    """What the hot path does: receive into the map, then commit."""
    writer.room()
    start = writer.position + HEADER_BYTES
    writer.map[start : start + len(payload)] = payload
    writer.commit_read(stream, len(payload), segments, 11, 22, 33)


def payloads(folder: Path, worker: int = 0) -> list[bytes]:
    return [bytes(record.buffer[record.start : record.end]) for record in records(folder, worker)]


def test_records_come_back_in_order_with_what_they_held(tmp_path: Path) -> None:
    writer = Spool(tmp_path, 3, SMALL_BYTES)
    writer.append_anchor(Anchor(at_ns=5, offset_ns=-7, width_ns=9))
    writer.append(spool.OPEN, 4, {"sent_ns": 1, "name": "é"})
    commit(writer, 4, b"payload", segments=2)
    writer.append(spool.END, 4, {"status": "ok"})
    writer.close()
    kept = []
    for record in records(tmp_path, 3):
        if record.kind == spool.ANCHOR:
            assert record.anchor() == Anchor(5, -7, 9)
        elif record.kind == spool.READ:
            assert record.buffer[record.start : record.end] == b"payload"
            assert (record.stream, record.segments) == (4, 2)
            assert (record.stamp_ns, record.read_ns, record.floor_ns) == (11, 22, 33)
        else:
            assert record.stream == 4
            kept.append(record.document())
    assert kept == [{"sent_ns": 1, "name": "é"}, {"status": "ok"}]
    assert workers(tmp_path) == [3]


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, READ_BYTES), max_size=40))
def test_a_full_segment_is_followed_by_another_and_nothing_is_lost(
    sizes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    writer = Spool(folder, 0, SMALL_BYTES)
    written = [bytes([i % 251]) * size for i, size in enumerate(sizes)]
    for payload in written:
        commit(writer, 1, payload)
    writer.close()
    assert payloads(folder) == written


def test_a_closed_capture_takes_no_more_disk_than_its_records(tmp_path: Path) -> None:
    writer = Spool(tmp_path, 0, SMALL_BYTES)
    commit(writer, 1, b"x" * 100)
    writer.close()
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size == HEADER_BYTES + 100


def test_the_capture_of_a_writer_that_never_closed_reads_the_same(tmp_path: Path) -> None:
    writer = Spool(tmp_path, 0, SMALL_BYTES)
    for number in range(9):
        commit(writer, number, b"%d" % number * 30_000)
    assert payloads(tmp_path) == [b"%d" % number * 30_000 for number in range(9)]
    writer.close()


@settings(deadline=None)
@given(cut=st.integers(0, 3 * (HEADER_BYTES + 50)))
def test_a_torn_file_gives_every_record_before_the_tear(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    writer = Spool(folder, 0, SMALL_BYTES)
    for number in range(3):
        commit(writer, number, b"x" * 50)
    writer.close()
    (path,) = folder.iterdir()
    with path.open("r+b") as file:
        file.truncate(cut)
    assert payloads(folder) == [b"x" * 50] * (cut // (HEADER_BYTES + 50))


def test_a_payload_that_was_received_but_not_committed_is_no_record(tmp_path: Path) -> None:
    writer = Spool(tmp_path, 0, SMALL_BYTES)
    commit(writer, 0, b"whole")
    start = writer.position + HEADER_BYTES
    writer.map[start : start + 4] = b"torn"
    assert payloads(tmp_path) == [b"whole"]
    writer.close()


def test_answers_can_be_read_by_their_owner_only(tmp_path: Path) -> None:
    writer = Spool(tmp_path, 0, SMALL_BYTES)
    for _ in range(9):
        commit(writer, 0, b"x" * READ_BYTES)
    writer.close()
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) > 1
    assert modes == {0o600}


def test_a_capture_that_is_already_there_is_not_overwritten(tmp_path: Path) -> None:
    Spool(tmp_path, 0, SMALL_BYTES).close()
    with pytest.raises(RecordingError, match="cannot write"):
        Spool(tmp_path, 0, SMALL_BYTES)


def test_remove_takes_every_worker_and_nothing_else(tmp_path: Path) -> None:
    for worker in range(2):
        Spool(tmp_path, worker, SMALL_BYTES).close()
    (tmp_path / "plan.json").touch()
    spool.remove(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


WRITER = """
import sys
from pathlib import Path
from legato.wire.spool import HEADER_BYTES, Spool
writer = Spool(Path(sys.argv[1]), 0, int(sys.argv[2]))
number = 0
while True:
    writer.room()
    payload = b"%08d" % number * (number % 900)
    start = writer.position + HEADER_BYTES
    writer.map[start : start + len(payload)] = payload
    writer.commit_read(number, len(payload), 1, 11, 22, 33)
    number += 1
    if number % 50 == 0:
        print(number, flush=True)
"""


def test_a_writer_killed_at_random_moments_leaves_every_record_it_committed(
    tmp_path: Path,
) -> None:
    moments = random.Random(7)
    for attempt in range(8):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(SMALL_BYTES)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()  # it runs; the moment of the kill is any after that
        time.sleep(moments.random() * 0.02)
        process.kill()
        told = [50, *map(int, process.stdout.read().split(b"\n")[:-1])]
        process.stdout.close()
        process.wait()
        found = 0
        for found, record in enumerate(records(folder, 0), start=1):
            number = found - 1
            assert record.stream == number
            payload = record.buffer[record.start : record.end]
            assert payload == b"%08d" % number * (number % 900)
        assert found >= told[-1]


FULL_DISK = """
import resource, sys
from pathlib import Path
from legato.errors import RecordingError
from legato.wire.spool import HEADER_BYTES, Spool
folder, segment_bytes = Path(sys.argv[1]), int(sys.argv[2])
writer = Spool(folder, 0, segment_bytes)
resource.setrlimit(resource.RLIMIT_FSIZE, (segment_bytes // 2, segment_bytes // 2))
committed = 0
try:
    while True:
        writer.room()
        writer.map[writer.position + HEADER_BYTES] = 120
        writer.commit_read(0, 1000, 1, 11, 22, 33)
        committed += 1
except RecordingError as error:
    print(committed, error)
"""


def test_a_disk_without_room_for_more_is_an_error_and_what_was_captured_stays(
    tmp_path: Path,
) -> None:
    # A limit on the size of files stops the next segment as a full disk would.
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path), str(SMALL_BYTES)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    committed, _, sentence = said.partition(" ")
    assert sentence.startswith(f"cannot write {tmp_path}/worker-000-00001.spool: ")
    assert len(payloads(tmp_path)) == int(committed) > 0
    assert len(list(tmp_path.iterdir())) == 1
