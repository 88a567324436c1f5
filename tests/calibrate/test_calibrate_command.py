"""`legato calibrate` as its user runs it, at a load any machine holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def _calibrate(
    cache: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "legato.cli", "calibrate", *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.parametrize("mode", [[], ["--tls"]])
def test_every_gap_is_compared_and_nothing_is_lost(tmp_path: Path, mode: list[str]) -> None:
    if mode and shutil.which("openssl") is None:
        pytest.skip("there is no openssl command to make a certificate with")
    done = _calibrate(tmp_path, "--levels", "3x50", "--seconds", "0.5", "--json", *mode)
    result = json.loads(done.stdout)
    (level,) = result["levels"]
    assert level["lost_events"] == 0
    # 3 streams of 25 tokens; a gap needs two exact ends, so a busy machine leaves a few out
    assert 0 < level["gaps"] <= 3 * 24
    # A stamp is taken inside the send that caused it, whatever the machine is doing.
    assert level["inside_share"] > 0.99
    assert result["label"] == "loopback, excluding NIC coalescing"
    # Whether the machine may be trusted is the machine's affair; that it is said is ours.
    trusted = not level["complaints"]
    assert done.returncode == (0 if trusted else 3)
    kept = tmp_path / "legato" / "calibration.json"
    assert kept.is_file() == trusted


def test_the_table_fits_eighty_columns(tmp_path: Path) -> None:
    done = _calibrate(tmp_path, "--levels", "2x50", "--seconds", "0.4", "--no-save")
    assert "kernel stamps" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert not (tmp_path / "legato").exists()


def test_a_result_that_cannot_be_kept_is_still_shown(tmp_path: Path) -> None:
    cache = tmp_path / "file"
    cache.touch()
    # An ASCII terminal gets the same table, spelled.
    done = _calibrate(
        cache, "--levels", "2x50", "--seconds", "0.4", PYTHONIOENCODING="ascii:strict"
    )
    assert "2 x 50" in done.stdout
    assert "|recorded gap - true gap|" in done.stdout
    trusted = "Trustworthy up to 100 events/s" in done.stdout
    assert done.returncode == (2 if trusted else 3)
    assert len(done.stderr.splitlines()) == trusted
    assert ("the calibration could not be kept in" in done.stderr) == trusted


@pytest.mark.parametrize("wrong", [["--levels", "many"], ["--seconds", "0"], ["--bogus"]])
def test_wrong_usage_is_one_sentence(tmp_path: Path, wrong: list[str]) -> None:
    done = _calibrate(tmp_path, *wrong)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout
