"""`--slo`: a run held against conditions, with the exit code that a pipeline needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from legato import cli
from legato.recording import CONTENT, Recording, Stream

MS = 1_000_000


@pytest.fixture
def run(tmp_path: Path) -> str:
    """40 streams of 30 tokens; in the first ten a gap is 30 ms, in the others 10 ms."""
    streams = []
    for number in range(40):
        gap_ns = (30 if number < 10 else 10) * MS
        sent_ns = number * 50 * MS
        streams.append(
            Stream(
                stream_id=number,
                scheduled_ns=sent_ns,
                sent_ns=sent_ns,
                ended_ns=sent_ns + 20 * MS + 30 * gap_ns,
                status="ok",
                arrival_ns=[20 * MS + gap_ns * token for token in range(30)],
                lag_ns=[0] * 30,
                early_ns=[0] * 30,
                read_index=list(range(30)),
                segments=[1] * 30,
                tokens=[1] * 30,
                kind=[CONTENT] * 30,
                flags=[0] * 30,
            )
        )
    path = tmp_path / "run.parquet"
    Recording.from_streams(streams, {"settings": {"mode": "closed"}}).write(path)
    return str(path)


def _report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = cli.main(["report", *arguments])
    return code, capsys.readouterr().out


def test_an_slo_that_holds_ends_with_0_and_one_that_fails_with_1(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _report(capsys, run, "--slo", "itl.p50<15ms,error<1%")[0] == 0
    code, page = _report(capsys, run, "--slo", "itl.p50<5ms,error<1%")
    assert code == 1
    assert "FAILS" in page
    assert _report(capsys, run)[0] == 0


def test_a_figure_that_is_withheld_does_not_pass_for_kept(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, page = _report(capsys, run, "--slo", "e2e.p99<10s")
    assert code == 1
    assert "not known" in page


def test_goodput_counts_the_requests_that_met_every_condition_by_themselves(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text = _report(capsys, run, "--slo", "itl.p50<15ms,ttft.p50<1s", "--json")
    goodput = json.loads(text)["goodput"]
    assert goodput["share"] == 0.75
    assert [one["verdict"] for one in goodput["conditions"]] == ["holds", "holds"]


def test_without_an_slo_there_is_no_goodput(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(_report(capsys, run, "--json")[1])["goodput"] is None
