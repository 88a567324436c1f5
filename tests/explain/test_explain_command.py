"""`legato explain` as its user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from paced import closed_loop, open_loop

from legato.explain.part import CAUSES
from legato.metronome.pattern import Pattern
from legato.recording import Recording

MIXED = Pattern(
    per_position_us=20, per_stream_us=200, interference_ms=12, draw="lognormal", events_per_write=2
)


def explain(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "legato.cli", "explain", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "mixed.parquet"
    open_loop(MIXED, rate=6, requests=60, prompts=(10, 100)).write(path)
    return path


def test_every_cause_has_a_figure_or_a_reason_and_a_sentence(mixed: Path) -> None:
    done = explain(mixed, "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert [cause["cause"] for cause in found["causes"]] == list(CAUSES)
    for cause in found["causes"]:
        assert cause["sentence"]
        if cause["ms"] is not None:
            low, high = cause["ci95"]
            assert low <= cause["ms"] <= high
            assert cause["share"] == pytest.approx(cause["ms"] / found["mean_ms"])
    assert sum(cause["ms"] or 0 for cause in found["causes"]) == pytest.approx(found["mean_ms"])


def test_the_page_fits_eighty_columns_and_names_the_effects(mixed: Path) -> None:
    done = explain(mixed)
    assert done.returncode == 0
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    text = " ".join(done.stdout.split())
    assert "each start holds up every other stream by" in text
    assert "with each other open stream" in text


def test_what_cannot_be_told_comes_with_what_would_tell(tmp_path: Path) -> None:
    path = tmp_path / "even.parquet"
    closed_loop(Pattern(), slots=4, requests=12).write(path)
    found = json.loads(explain(path, "--json").stdout)
    causes = {cause["cause"]: cause for cause in found["causes"]}
    assert causes["context"]["ms"] is None
    assert "cannot be told from position" in causes["context"]["sentence"]
    assert causes["position"]["title"] == "position or context"
    assert causes["in_flight"]["ms"] is None
    assert len(found["advice"]) == 2


def test_a_recording_without_enough_gaps_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    Recording.from_streams([]).write(path)
    for wrong in ([path], [tmp_path / "nothing.parquet"], []):
        done = explain(*wrong)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith("legato: ")
        assert done.stderr.count("\n") == 1
