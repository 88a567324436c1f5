"""Result files of other tools, as those tools wrote them, become recordings that say the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.errors import UsageError
from legato.exchange.imported import Times, recording, spread
from legato.exchange.importing import read
from legato.metrics.dialects import all_dialects
from legato.metrics.summary import summarise
from legato.recording import FINISH, ROLE, USER_CLOCK, Recording
from legato.wire.folder import load

SAMPLES = Path(__file__).parent / "samples"
AIPERF = SAMPLES / "aiperf-profile_export.jsonl"
GUIDELLM = SAMPLES / "guidellm-report.json"
VLLM_CHAT = SAMPLES / "vllm-chat.json"
VLLM_COMPLETIONS = SAMPLES / "vllm-completions.json"
ALL = [AIPERF, GUIDELLM, VLLM_CHAT, VLLM_COMPLETIONS]


def imported(path: Path) -> Recording:
    return recording(read(path), path.name)


def aiperf_lines() -> list[Any]:
    return [json.loads(line) for line in AIPERF.read_text().splitlines()]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_times_are_marked_as_the_tools_own_and_bounded_by_the_chunk_before(path: Path) -> None:
    made = imported(path)
    assert (made.flags & USER_CLOCK).all()
    for stream in made:
        reads_ns = [0, *dict.fromkeys(stream.arrival_ns)]
        bound_ns = {b: b - a for a, b in pairwise(reads_ns)}
        assert list(stream.early_ns) == [bound_ns[at] for at in stream.arrival_ns]
    # Nothing in such a file shows that its gaps can be believed.
    assert summarise(made)["instrument"]["verdict"] != "valid"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_failed_request_is_kept_with_its_error(path: Path) -> None:
    failures = summarise(imported(path))["failures"]
    assert [failure["status"] for failure in failures] == ["http_error"]
    assert "Internal Server Error" in failures[0]["error"] or "status 500" in failures[0]["error"]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_what_is_missing_is_said_and_kept(path: Path) -> None:
    (run,) = read(path)
    assert run.missing
    assert recording([run], path.name).meta["imported"]["missing"] == run.missing


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_an_import_survives_being_written(path: Path, tmp_path: Path) -> None:
    made = imported(path)
    made.write(tmp_path / "run.parquet")
    again = load(tmp_path / "run.parquet")
    assert again.table.equals(made.table)


def test_aiperf_prints_what_its_dialect_says_of_the_import() -> None:
    theirs = [line["metrics"] for line in aiperf_lines() if "error" not in line]
    ours = all_dialects(imported(AIPERF))["aiperf"]
    for name, metric in {"itl_ms": "inter_token_latency", "ttft_ms": "time_to_first_token"}.items():
        values = [metrics[metric]["value"] for metrics in theirs]
        assert ours[name]["mean"] == pytest.approx(np.mean(values), rel=1e-6)
        assert ours[name]["p50"] == pytest.approx(np.median(values), rel=1e-6)


def test_aiperf_keeps_every_gap_and_the_exact_send() -> None:
    lines = {line["metadata"]["request_start_ns"]: line["metrics"] for line in aiperf_lines()}
    for stream in imported(AIPERF):
        assert stream.sent_ns is not None
        metrics = lines[stream.sent_ns]
        if stream.status == "ok":
            gaps_ms = np.diff(stream.arrival_ns) / 1e6
            assert gaps_ms == pytest.approx(metrics["inter_chunk_latency"]["value"], abs=1e-5)
            assert sum(stream.tokens) == metrics["output_sequence_length"]["value"]


def test_aiperf_warm_up_stays_out_of_the_figures(tmp_path: Path) -> None:
    lines = aiperf_lines()
    lines[0]["metadata"]["benchmark_phase"] = "warmup"
    path = tmp_path / "warm.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    assert summarise(imported(path))["streams"]["total"] == len(lines) - 1


def test_guidellm_prints_what_its_dialect_says_of_the_import() -> None:
    requests = json.loads(GUIDELLM.read_text())["benchmarks"][0]["requests"]["successful"]
    ours = all_dialects(imported(GUIDELLM))["guidellm"]
    values = [request["inter_token_latency_ms"] for request in requests]
    # Answers of one length weigh alike; the file's epoch times are good to a quarter of a µs.
    assert ours["itl_ms"]["mean"] == pytest.approx(np.mean(values), abs=1e-3)
    values = [request["time_to_first_token_ms"] for request in requests]
    assert ours["ttft_ms"]["mean"] == pytest.approx(np.mean(values), abs=1e-3)


def test_guidellm_has_one_gap_an_answer_and_says_so() -> None:
    made = imported(GUIDELLM)
    assert {len(stream.arrival_ns) for stream in made if stream.status == "ok"} == {2}
    assert read(GUIDELLM)[0].missing[0].startswith("the gaps")
    assert made.meta["settings"]["concurrency"] == 2
    assert made.meta["versions"] == {"guidellm": "0.8.1"}


@pytest.mark.parametrize("path", [VLLM_CHAT, VLLM_COMPLETIONS], ids=lambda path: path.stem)
def test_vllm_prints_what_its_dialect_says_of_the_import(path: Path) -> None:
    result = json.loads(path.read_text())
    ours = all_dialects(imported(path))["vllm"]
    gaps_ms = np.concatenate([gaps for gaps in result["itls"] if gaps]) * 1e3
    assert ours["itl_ms"]["mean"] == pytest.approx(gaps_ms.mean(), rel=1e-5)
    assert ours["itl_ms"]["p99"] == pytest.approx(np.quantile(gaps_ms, 0.99), rel=1e-5)
    ttfts_ms = [ttft * 1e3 for ttft in result["ttfts"] if ttft]
    assert ours["ttft_ms"]["mean"] == pytest.approx(np.mean(ttfts_ms), rel=1e-5)


def test_vllm_messages_beyond_the_tokens_are_role_and_finish() -> None:
    for path, kinds in ((VLLM_CHAT, {ROLE, FINISH}), (VLLM_COMPLETIONS, {FINISH})):
        for stream in imported(path):
            if stream.status == "ok":
                assert sum(stream.tokens) == stream.output_tokens == 8
                held = zip(stream.kind, stream.tokens, strict=True)
                assert {kind for kind, tokens in held if not tokens} == kinds


def test_vllm_without_send_times_says_so(tmp_path: Path) -> None:
    result = json.loads(VLLM_CHAT.read_text())
    del result["start_times"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(result))
    assert any("send times" in line for line in read(path)[0].missing)
    assert summarise(imported(path))["streams"]["ok"] == 5


def test_vllm_results_appended_to_one_file_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "appended.json"
    path.write_text(VLLM_CHAT.read_text() + "\n" + VLLM_COMPLETIONS.read_text())
    assert len(read(path)) == 2
    assert len(imported(path)) == 12


BROKEN: dict[str, Callable[[], str]] = {
    "cut": lambda: AIPERF.read_text()[:-200],
    "empty": lambda: "",
    "a list": lambda: "[]",
    "another object": lambda: '{"hello": 1}',
    "no times": lambda: _without(AIPERF, "metadata", "request_end_ns"),
    "totals of AIPerf": lambda: '{"aiperf_version": "0.13.0", "request_latency": {}}',
    "totals of vLLM": lambda: _dropped(VLLM_CHAT, "itls"),
    "text for a number": lambda: VLLM_CHAT.read_text().replace('"ttfts": [0', '"ttfts": ["x", 0'),
    "short lists": lambda: VLLM_CHAT.read_text().replace('"output_lens": [8, ', '"output_lens": ['),
    "no requests": lambda: '{"benchmarks": [{"requests": {}}]}',
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_bad_file_is_one_sentence_that_names_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(BROKEN[name]())
    with pytest.raises(UsageError, match=r"broken\.json") as refusal:
        read(path)
    assert "\n" not in str(refusal.value)


def _without(path: Path, *keys: str) -> str:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    holder = lines[0]
    for key in keys[:-1]:
        holder = holder[key]
    del holder[keys[-1]]
    return "\n".join(json.dumps(line) for line in lines)


def _dropped(path: Path, key: str) -> str:
    return json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != key})


@given(st.integers(0, 500), st.integers(0, 60))
def test_tokens_are_spread_whole_and_evenly(total: int, chunks: int) -> None:
    tokens, source = spread(total, chunks)
    assert len(tokens) == chunks
    if source == "usage_spread":
        assert sum(tokens) == total
        assert max(tokens) - min(tokens) <= 1


@given(st.lists(st.integers(1, 50), max_size=30))
def test_chunks_of_one_time_share_a_read(steps: list[int]) -> None:
    arrivals_ns = np.cumsum([step // 10 for step in steps]).tolist()
    columns = Times([at + 1 for at in arrivals_ns], [1] * len(arrivals_ns)).columns()
    for i, (a, b) in enumerate(pairwise(arrivals_ns)):
        same = columns["read_index"][i] == columns["read_index"][i + 1]
        assert same == (a == b)
        assert not same or columns["segments"][i] == 0
