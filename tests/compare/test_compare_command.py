"""`legato compare` as it is typed: what it prints, its exit codes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compared_runs import run

from legato.cli import main
from legato.recording import Recording

Compare = Callable[..., tuple[int, str, str]]


@pytest.fixture
def compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Compare:
    """Runs the command in a folder where recordings given by name lie."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def compared(*arguments: str, **recordings: Recording) -> tuple[int, str, str]:
        for name, recording in recordings.items():
            recording.write(tmp_path / f"{name}.parquet")
        code = main(["compare", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return compared


def document(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out)
    return found


# --- what is printed


def test_the_verdict_comes_first_and_no_line_is_wider_than_the_terminal(compare: Compare) -> None:
    code, out, _ = compare("a.parquet", "b.parquet", a=run(1), b=run(2, gap_ms=12))
    assert code == 0
    lines = out.splitlines()
    assert "B WORSE" in lines[0]
    assert "p50 ITL rose" in lines[0]
    assert "one run a side" in out
    assert max(map(len, lines)) <= 80


def test_json_holds_every_quantile_with_its_intervals(compare: Compare) -> None:
    code, out, _ = compare("a.parquet", "b.parquet", "--json", a=run(1), b=run(2, gap_ms=12))
    (found,) = document(out)["comparisons"]
    assert code == 0
    assert (found["verdict"], found["primary"], found["unit"]) == ("worse", "itl.p50", "streams")
    assert found["between_run_variance_known"] is False
    for name in ("p50", "p90", "p95", "p99"):
        figure = found["figures"][f"itl.{name}"]
        low, high = figure["ratio"]["ci95"]
        assert low <= figure["ratio"]["value"] <= high
        low, high = figure["difference"]["ci95"]
        assert low <= figure["b"] - figure["a"] <= high
    assert found["rank_test"]["p"] < 0.001
    assert found["rank_test"]["cliffs_delta"]["ci95"][0] > 0


def test_markdown_is_a_table_with_the_rest_folded_away(compare: Compare) -> None:
    code, out, _ = compare("a.parquet", "b.parquet", "--markdown", a=run(1), b=run(2, gap_ms=8))
    assert code == 0
    assert out.startswith("### legato compare\n")
    assert "**B: better.** p50 ITL fell" in out
    head, _, folded = out.partition("<details>")
    assert "| ITL p99, ms |" in head
    assert "| ITL p95, ms |" not in head
    assert "| ITL p95, ms |" in folded


def test_several_recordings_are_each_compared_with_the_first(compare: Compare) -> None:
    names = [f"{name}.parquet" for name in "abc"]
    _, out, _ = compare(*names, "--json", a=run(1), b=run(2), c=run(3, gap_ms=12))
    found = document(out)["comparisons"]
    assert [(one["baseline"], one["candidate"]) for one in found] == [("A", "B"), ("A", "C")]
    assert [one["verdict"] for one in found] == ["no difference shown", "worse"]


def test_several_runs_a_side_make_runs_the_unit(compare: Compare) -> None:
    sides = ["--a", "a1.parquet", "a2.parquet", "--b", "b1.parquet", "b2.parquet"]
    made = {"a1": run(1), "a2": run(2), "b1": run(3, gap_ms=12), "b2": run(4, gap_ms=12)}
    _, out, _ = compare(*sides, "--json", **made)
    (found,) = document(out)["comparisons"]
    assert (found["unit"], found["between_run_variance_known"]) == ("runs", True)
    _, out, _ = compare(*sides, "--paired", "--json")
    assert document(out)["comparisons"][0]["unit"] == "pairs"


def test_another_figure_can_be_declared_primary(compare: Compare) -> None:
    options = ["--primary", "ttft.p50", "--json"]
    _, out, _ = compare("a.parquet", "b.parquet", *options, a=run(1), b=run(2))
    assert document(out)["comparisons"][0]["primary"] == "ttft.p50"


# --- gates


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        (["itl.p50>+5%"], 1),
        (["itl.p50>+50%"], 0),
        (["itl.p50>+50%", "itl.p50>+5%"], 1),
        (["itl.p50>+5%, error>1%"], 0),
        (["ttft.p999>+5%"], 1),
    ],
)
def test_a_gate_that_fails_is_exit_code_1(
    compare: Compare, conditions: list[str], code: int
) -> None:
    gates = [part for text in conditions for part in ("--fail-if", text)]
    got, out, _ = compare("a.parquet", "b.parquet", *gates, a=run(1), b=run(2, gap_ms=12))
    assert got == code
    assert ("FAILED" in out) == (code == 1)


# --- refusals


UNLIKE: dict[str, tuple[dict[str, Any], str]] = {
    "other prompt lengths": ({"prompt_tokens": 512}, "prompt length: 256 and 512 tokens"),
    "other answer lengths": ({"tokens": 100, "streams": 60}, "answer length: 50.0 and 100 tokens"),
    "other token source": ({"token_source": "chunks"}, "chunk_usage and chunks"),
    "other api": (
        {"meta": {"settings": {"mode": "closed", "api": "completions", "concurrency": 10}}},
        "API: chat and completions",
    ),
    "an invalid run": (
        {"meta": {"settings": {"mode": "closed", "api": "chat", "concurrency": 90}}},
        "b.parquet is invalid as a measurement",
    ),
}


@pytest.mark.parametrize("case", UNLIKE)
def test_what_is_not_comparable_is_refused_unless_forced(compare: Compare, case: str) -> None:
    fields, words = UNLIKE[case]
    code, out, err = compare("a.parquet", "b.parquet", a=run(1), b=run(2, **fields))
    assert (code, out) == (2, "")
    assert words in err
    assert "--force" in err
    assert err.count("\n") == 1
    code, out, _ = compare("a.parquet", "b.parquet", "--force", "--json")
    assert code == 0
    assert any(words in why for why in document(out)["forced"])
    _, out, _ = compare("a.parquet", "b.parquet", "--force")
    assert "compared by force" in out


def test_lengths_within_a_tenth_are_comparable(compare: Compare) -> None:
    code, _, _ = compare("a.parquet", "b.parquet", a=run(1), b=run(2, prompt_tokens=275))
    assert code == 0


def test_another_load_is_said_and_not_refused(compare: Compare) -> None:
    settings = {"mode": "closed", "api": "chat", "concurrency": 9}
    code, out, _ = compare(
        "a.parquet", "b.parquet", a=run(1), b=run(2, meta={"settings": settings})
    )
    assert code == 0
    assert "the load was not the same" in out


USAGE: dict[str, tuple[list[str], str]] = {
    "one recording": (["a.parquet"], "needs 2 to 26 recordings, and got 1"),
    "no recording": ([], "got 0"),
    "one side": (["--a", "a.parquet"], "--a and --b go together"),
    "two ways at once": (["a.parquet", "--a", "a.parquet", "--b", "a.parquet"], "only one"),
    "uneven pairs": (
        ["--a", "a.parquet", "--b", "a.parquet", "a.parquet", "--paired"],
        "there are 1 and 2",
    ),
    "pairs of single recordings": (["a.parquet", "a.parquet", "--paired"], "--paired belongs"),
    "an unknown primary figure": (["a.parquet", "a.parquet", "--primary", "x.p50"], "no metric"),
    "a bad condition": (["a.parquet", "a.parquet", "--fail-if", "itl.p99>5"], "needs a unit"),
    "a live option": (["a.parquet", "a.parquet", "--rounds", "3"], "--rounds belongs to --live"),
    "a file that is not there": (["a.parquet", "nosuch.parquet"], "nosuch.parquet"),
    "no rounds": (["--live", "http://h:1", "http://h:2", "--rounds", "0"], "--rounds 0"),
    "a URL without a scheme": (["--live", "h:1", "http://h:2"], "h:1"),
}


@pytest.mark.parametrize("case", USAGE)
def test_wrong_usage_is_one_sentence_and_exit_code_2(compare: Compare, case: str) -> None:
    arguments, words = USAGE[case]
    code, out, err = compare(*arguments, a=run(1, streams=20, tokens=20))
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_recording_without_a_good_stream_has_nothing_to_compare(compare: Compare) -> None:
    bad = run(2, streams=20, tokens=20, failed=20)
    code, _, err = compare("a.parquet", "b.parquet", "--force", a=run(1), b=bad)
    assert code == 2
    assert "no stream that ended well" in err
