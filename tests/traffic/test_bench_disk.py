"""A disk that is full: refused before the load where it can be known, and no capture lost."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run, started, wait_until

import legato
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern

MIB = 2**20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 100 MiB and 64 files."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m,nr_inodes=64", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small file system cannot be mounted here: {error}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, leave_bytes: int) -> None:
    """Take all but `leave_bytes` of what is free."""
    found = os.statvfs(folder)
    with (folder / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - leave_bytes)


def fill_with_files(folder: Path) -> None:
    """Until no file can be made. Bytes would not do: a worker gives back what it reserved."""
    with contextlib.suppress(OSError):
        for number in itertools.count():
            (folder / f"filler-{number}").touch()


def test_too_little_room_is_told_before_the_load(target: str, small_disk: Path) -> None:
    fill(small_disk, 20 * MIB)
    done = run("bench", target, "--out", small_disk / "run.parquet")
    assert done.code == 2
    assert done.is_one_sentence(), done
    assert f"{small_disk} has 20 MiB free" in done.err
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_a_disk_that_fills_up_ends_the_run_and_keeps_what_was_captured(small_disk: Path) -> None:
    # Each answer holds a line of 10 MB: the fourth segment of the capture finds no room.
    out = small_disk / "run.parquet"
    pattern = Pattern(gap_ms=1, fault="long_line", fault_at=2)
    load = ("--concurrency", 2, "--requests", 40, "--output-tokens", 5)
    with running(pattern) as metronome:
        done = run("bench", metronome.url, "--json", "--out", out, *load)
    assert "No space left on device" in done.err
    assert "Traceback" not in done.err
    assert done.err.count("\n") == 1
    recording = legato.load(str(out))
    assert recording.meta["partial"] is True
    good = [stream for stream in recording if stream.status == "ok"]
    assert 4 <= len(good) < 40
    assert all(sum(stream.tokens) == 5 for stream in good)
    assert done.summary["streams"]["ok"] == len(good)


def test_a_disk_too_full_for_the_recording_leaves_the_capture(
    target: str, small_disk: Path
) -> None:
    out = small_disk / "run.parquet"
    partial = small_disk / "run.parquet.partial"
    load = ("--concurrency", 2, "--duration", 1, "--output-tokens", 20)
    with started("bench", target, "--json", "--out", out, *load) as process:
        wait_until(lambda: any(partial.glob("*.pulse")), "the worker is at work")
        fill_with_files(small_disk)
        done = process.finished()
    assert done.code == 2
    assert done.is_one_sentence(), done
    assert f"legato report {partial}" in done.err
    assert not out.exists()
    again = run("report", partial, "--json")
    assert again.code in (0, 3), again
    assert again.summary["streams"]["ok"] >= 2
