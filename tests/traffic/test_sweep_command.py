"""`legato sweep` as a user runs it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Finished, run, started, wait_until

import legato
from legato.cli import main
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern

LEVELS = ("--requests", "12", "--output-tokens", "20", "--prompt-tokens", "8")


@pytest.fixture(scope="module")
def busy() -> Iterator[str]:
    """A metronome that slows down by 3 ms a stream: 4 ms, 7 ms, 13 ms, …"""
    with running(Pattern(gap_ms=4, per_stream_us=3000, first_token_ms=5)) as metronome:
        yield metronome.url


def test_a_sweep_shows_each_level_its_recording_and_the_knee(busy: str, tmp_path: Path) -> None:
    out = tmp_path / "levels"
    done = run(
        *("sweep", busy, "--concurrency", "1,4,2", "--slo", "itl.p50<10ms", "--out", out, *LEVELS),
        "--json",
    )
    found = done.summary
    levels = found["levels"]
    assert [level["concurrency"] for level in levels] == [1, 2, 4]
    assert [level["itl_ms"]["p50"] for level in levels] == pytest.approx([4, 7, 13], rel=0.2)
    for level in levels:
        recording = legato.load(level["recording"])
        assert len(recording) == 12
        assert level["trimmed"]["streams"] > 0
        assert level["verdict"] in ("valid", "degraded", "invalid")
    assert levels[0]["goodput"]["requests_per_s"] == pytest.approx(levels[0]["requests_per_s"])
    assert levels[2]["goodput"]["requests_per_s"] == 0
    assert json.loads((out / "sweep.json").read_text()) == found


def test_rates_are_levels_too(target: str, tmp_path: Path) -> None:
    done = run(
        *("sweep", target, "--rate", "20,40", "--out", tmp_path / "rates", *LEVELS), "--json"
    )
    assert [level["rate"] for level in done.summary["levels"]] == [20, 40]


def test_the_page_fits_eighty_columns_and_says_its_rules(target: str, tmp_path: Path) -> None:
    done = run(
        *("sweep", target, "--concurrency", "1,2", "--out", tmp_path / "page", *LEVELS),
        extra={"COLUMNS": "80"},
    )
    assert all(len(line) <= 80 for line in done.out.splitlines()), done.out
    for said in ("ITL p50", "ITL: median", "knee", "trimmed:", "recordings in"):
        assert said in " ".join(done.out.split())


def test_ctrl_c_keeps_the_levels_done(target: str, tmp_path: Path) -> None:
    out = tmp_path / "cut"
    asked = ("sweep", target, "--concurrency", "1,2,3,4", "--duration", "1", "--out", out, "--json")
    with started(*asked, "--prompt-tokens", "8", "--output-tokens", "5") as command:
        wait_until((out / "concurrency-0001.parquet").exists, "the first level")
        wait_until((out / "concurrency-0002.parquet.partial").exists, "the second level")
        command.signal_group(signal.SIGINT)
        done = command.finished()
    levels = json.loads(done.out)["levels"]
    assert len(levels) in (1, 2)
    assert levels[0]["streams"]["ok"] > 0
    assert [level["partial"] for level in levels] == [False, True][: len(levels)]
    assert Path(levels[0]["recording"]).exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--concurrency", "1,two"), "'two'"),
        (("--concurrency", "0,1"), "'0'"),
        (("--concurrency", "1", "--rate", "1"), "contradict"),
        (("--slo", "speed<3"), "speed"),
        (("--slo", "listener"), "reader"),
        (("--concurrency", "50", "--requests", "5"), "never be reached"),
    ],
)
def test_wrong_usage_is_one_sentence_and_sends_nothing(
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(["sweep", "http://127.0.0.1:9/v1", *arguments])
    done = Finished(code, *capsys.readouterr())
    assert done.code == 2
    assert done.is_one_sentence()
    assert said in done.err
    assert not list(tmp_path.iterdir())


def test_a_target_that_is_not_there_leaves_nothing_behind(tmp_path: Path) -> None:
    done = run("sweep", "http://127.0.0.1:9/v1", "--concurrency", "1", *LEVELS, cwd=tmp_path)
    assert done.code == 4
    assert not list(tmp_path.iterdir())


def test_a_folder_that_holds_something_is_refused(target: str, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    done = run("sweep", target, "--out", tmp_path)
    assert done.code == 2
    assert "not empty" in done.err
