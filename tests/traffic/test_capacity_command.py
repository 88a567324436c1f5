"""`legato capacity` as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Finished, run

from legato.cli import main
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern

ASKED = ("--output-tokens", "12", "--prompt-tokens", "8")


@pytest.fixture(scope="module")
def busy() -> Iterator[str]:
    """A metronome that slows down by 4 ms a stream: 6 ms, 10 ms, 14 ms, 18 ms, …"""
    with running(Pattern(gap_ms=6, per_stream_us=4000, first_token_ms=5)) as metronome:
        yield metronome.url


def test_the_limit_of_a_known_server_is_found(busy: str, tmp_path: Path) -> None:
    """16 ms allow 3.5 streams."""
    out = tmp_path / "found"
    done = run(
        *("capacity", busy, "--slo", "itl.p50<16ms", "--out", out, "--json", "--runs", "6"),
        *("--cost-per-hour", "3.6", "--peak", "1", "--max", "16", *ASKED, "--duration", "1"),
    )
    found = done.summary
    assert json.loads((out / "capacity.json").read_text()) == found
    assert found["capacity"]["runs"] == len(found["levels"]) <= 6
    assert [trial["concurrency"] for trial in found["peak"]] == [3, 5]
    if found["ending"] == "client":
        pytest.skip("this machine is too busy to hold a few streams")
    assert found["capacity"]["concurrency"] in (3, 4)
    low, high = found["capacity"]["ci95"]
    assert low <= found["capacity"]["concurrency"] <= high
    assert found["binding"].startswith("itl.p50<16")
    # A thousandth of the currency a second, spread over the tokens of that second.
    assert found["cost_per_million_tokens"] == pytest.approx(1000 / found["tokens_per_s"])


def test_an_slo_that_the_lowest_load_breaks_ends_with_one(busy: str, tmp_path: Path) -> None:
    out = tmp_path / "none"
    done = run("capacity", busy, "--slo", "itl.p50<1ms", "--out", out, *ASKED, "--duration", "1")
    ending = json.loads((out / "capacity.json").read_text())["ending"]
    # On a machine too busy to hold even one stream the client is the reason.
    assert done.code == {"none": 1, "client": 3}[ending]
    assert "lowest load" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines()), done.out


def test_a_limit_above_the_highest_load_is_called_a_lower_bound(
    target: str, tmp_path: Path
) -> None:
    done = run(
        *("capacity", target, "--slo", "itl.p50<1s", "--max", "2", "--out", tmp_path / "most"),
        *("--json", *ASKED, "--duration", "1"),
    )
    found = done.summary
    assert found["lower_bound"] or found["ending"] == "client"
    assert found["capacity"]["concurrency"] == (2 if found["ending"] == "most" else 1)
    assert found["capacity"]["ci95"][1] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--slo is needed"),
        (("--slo", "itl.p99<0ms"), "can never hold"),
        (("--slo", "itl.p99<50ms,itl.p99>60ms"), "never"),
        (("--slo", "error<200%"), "share"),
        (("--slo", "listener"), "reader, coder, agent, speech, batch"),
        (("--slo", "reader", "--max", "0"), "--max"),
        (("--slo", "reader", "--min", "5", "--max", "2"), "--min 5"),
        (("--slo", "reader", "--peak", "1.5"), "whole number"),
        (("--slo", "reader", "--runs", "0"), "--runs 0"),
        (("--slo", "reader", "--requests", "50"), "--requests"),
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
    code = main(["capacity", "http://127.0.0.1:9/v1", *arguments])
    done = Finished(code, *capsys.readouterr())
    assert done.code == 2
    assert done.is_one_sentence()
    assert said in done.err
    assert not list(tmp_path.iterdir())


def test_a_target_on_which_every_stream_fails_ends_with_four(tmp_path: Path) -> None:
    with running(Pattern(fault="http_error")) as metronome:
        done = run(
            *("capacity", metronome.url, "--slo", "reader", "--out", tmp_path / "bad", *ASKED),
        )
    assert done.code == 4
    assert "no stream succeeded" in done.err
