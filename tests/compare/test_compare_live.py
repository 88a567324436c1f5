"""`legato compare --live` against two real metronomes of known pace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import legato
from legato.cli import main
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern

if TYPE_CHECKING:
    import pytest

ROUNDS = 3
LOAD = ["--concurrency", "4", "--requests", "16", "--output-tokens", "20"]


def test_two_endpoints_are_measured_in_turns_and_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    with running(Pattern(gap_ms=5)) as a, running(Pattern(gap_ms=10)) as b:
        # A busy machine may make a run invalid, which is not what is tested here.
        live = ["--live", a.url, b.url, "--rounds", str(ROUNDS), "--out", str(folder), *LOAD]
        code = main(["compare", *live, "--force", "--json", "--fail-if", "itl.p50>+20%"])
    said = capsys.readouterr()
    assert code == 1
    (found,) = json.loads(said.out)["comparisons"]
    assert (found["verdict"], found["unit"]) == ("worse", "pairs")
    assert found["figures"]["itl.p50"]["ratio"]["value"] > 1.5
    started = {path.stem: legato.load(path).meta["load"]["started_ns"] for path in folder.iterdir()}
    order = sorted(started, key=started.__getitem__)
    assert order == ["a-1", "b-1", "b-2", "a-2", "a-3", "b-3"]


def test_recordings_that_exist_are_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b-2.parquet").touch()
    url = "http://127.0.0.1:9"
    assert main(["compare", "--live", url, url, "--out", str(tmp_path)]) == 2
    assert "b-2.parquet exists" in capsys.readouterr().err


def test_an_endpoint_that_is_not_there_is_exit_code_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://127.0.0.1:9"
    assert main(["compare", "--live", url, url, "--out", str(tmp_path / "runs")]) == 4
    assert "127.0.0.1:9" in capsys.readouterr().err
