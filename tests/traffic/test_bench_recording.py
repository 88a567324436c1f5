"""What a run leaves: the load that was asked for, in the recording, and one summary on stdout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import Finished, bench, expected_code, run

import legato
from legato.recording import Recording

SUMMARY_KEYS = {
    *("schema", "run", "streams", "tokens", "tokens_per_chunk"),
    *("itl_ms", "itl_zeros_ms", "chunk_gap_ms", "tpot_ms", "tpot_incl_ms"),
    *("ttft_ms", "ttft_intended_ms", "ttft_any_ms", "decode_ms", "e2e_ms"),
    *("by_position", "by_context", "by_in_flight", "cold", "tps", "goodput"),
    *("smoothness", "dialects", "instrument"),
}
DISTRIBUTION_KEYS = {"n", "mean", "std", "p50", "p90", "p95", "p99", "p999", "max", "ci95"}
INSTRUMENT_KEYS = {
    *("clock", "error_us", "client_merged_share", "coalesced_share", "lag_us"),
    *("schedule_slip_ms", "concurrency_reached", "cpu_share", "verdict", "reasons"),
}

Run = tuple[Finished, Recording]


@pytest.fixture(scope="module")
def closed(target: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """6 streams kept open by two workers: 5 requests to warm up, 26 that count."""
    out = tmp_path_factory.mktemp("closed") / "run.parquet"
    load = ("--concurrency", 6, "--requests", 26, "--warmup", 5, "--workers", 2)
    return bench(target, out, *load, "--prompt-tokens", 40, "--output-tokens", 20, "--seed", 7)


@pytest.fixture(scope="module")
def paced(target: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """40 requests a second from two workers: 2 to warm up, 14 that count."""
    out = tmp_path_factory.mktemp("open") / "run.parquet"
    load = ("--rate", 40, "--requests", 14, "--warmup", 2, "--workers", 2)
    return bench(target, out, *load, "--output-tokens", 20, "--cache-friendly")


def test_json_is_one_object_on_stdout_and_nothing_else(closed: Run) -> None:
    done, _ = closed
    assert done.err == ""
    assert done.out.count("\n") == 1
    assert set(done.summary) >= SUMMARY_KEYS
    assert done.code == expected_code(done.summary)


def test_the_summary_holds_every_key_of_its_parts(closed: Run) -> None:
    summary = closed[0].summary
    distributions = [name for name in SUMMARY_KEYS if name.endswith("_ms")]
    assert all(set(summary[name]) >= DISTRIBUTION_KEYS for name in distributions)
    assert set(summary["instrument"]) >= INSTRUMENT_KEYS
    assert (
        summary["streams"]
        | {
            "total": 26,
            "ok": 26,
            "failed": 0,
            "aborted": 0,
            "not_streaming": 0,
        }
        == summary["streams"]
    )
    assert summary["tokens"]["output"] == 26 * 20
    assert summary["tokens"]["source"] == "chunk_usage"


def test_report_prints_the_same_summary_again(closed: Run) -> None:
    done, _ = closed
    again = run("report", *done.summary["run"]["recording"], "--json")
    assert (again.code, again.err) == (done.code, "")
    assert again.summary == done.summary


def test_the_settings_are_in_the_recording(closed: Run, target: str) -> None:
    settings = closed[1].meta["settings"]
    asked = {
        "url": target,
        "api": "chat",
        "model": "metronome",
        "mode": "closed",
        "concurrency": 6,
        "rate": None,
        "requests": 26,
        "duration_s": None,
        "warmup": 5,
        "workers": 2,
        "prompt_tokens": 40,
        "output_tokens": 20,
        "seed": 7,
        "cache_friendly": False,
        "tls": False,
        "proxy": None,
        "stamps": "kernel",
    }
    assert {name: settings[name] for name in asked} == asked
    assert closed[1].meta["host"]["loopback"] is True
    assert closed[1].meta["versions"]["legato"] == legato.__version__


def test_workers_share_the_requests_and_send_exactly_as_many(closed: Run) -> None:
    recording = closed[1]
    assert len(recording) == 31
    assert len(set(recording.ints("stream_id"))) == 31
    assert set(recording.ints("worker")) == {0, 1}
    assert len(set(recording.strings("response_id"))) == 31


def test_a_closed_loop_reaches_its_concurrency_and_never_exceeds_it(closed: Run) -> None:
    assert closed[1].ints("in_flight").max() == 6


def test_the_first_requests_are_the_warm_up(closed: Run) -> None:
    recording = closed[1]
    warm = recording.strings("phase") == "warmup"
    scheduled = recording.ints("scheduled_ns")
    assert np.count_nonzero(warm) == 5
    assert scheduled[warm].max() < scheduled[~warm].min()


def test_streams_that_outlive_the_load_are_the_cool_down(closed: Run) -> None:
    recording = closed[1]
    cooling = recording.strings("phase") == "cooldown"
    drain_ns = recording.meta["load"]["drain_ns"]
    assert cooling.any()
    assert (cooling == (recording.ints("ended_ns") > drain_ns)).all()
    assert recording.ints("sent_ns").max() <= drain_ns


def test_prompts_have_the_words_asked_for_with_their_salt_and_without(
    closed: Run, paced: Run
) -> None:
    assert set(closed[1].ints("prompt_tokens")) == {40}
    assert closed[1].meta["settings"]["cache_friendly"] is False
    assert set(paced[1].ints("prompt_tokens")) == {256}
    assert paced[1].meta["settings"]["cache_friendly"] is True


def test_an_open_loop_keeps_its_schedule_to_the_nanosecond(paced: Run) -> None:
    recording = paced[1]
    scheduled = np.sort(recording.ints("scheduled_ns"))
    assert set(np.diff(scheduled)) == {1_000_000_000 // 40}
    assert len(scheduled) == 16
    assert (recording.ints("sent_ns") >= recording.ints("scheduled_ns")).all()
    assert recording.meta["settings"]["mode"] == "open"


def test_latency_from_the_intended_time_is_never_less_than_from_the_actual(paced: Run) -> None:
    summary = paced[0].summary
    assert summary["ttft_intended_ms"]["mean"] >= summary["ttft_ms"]["mean"]
    assert summary["ttft_intended_ms"]["max"] >= summary["ttft_ms"]["max"]
    assert summary["instrument"]["schedule_slip_ms"]["p99"] >= 0


def test_text_is_not_kept_unless_asked(target: str, closed: Run, tmp_path: Path) -> None:
    assert closed[1].table.column("text").null_count == len(closed[1])
    load = ("--concurrency", 1, "--requests", 1, "--output-tokens", 3)
    _, kept = bench(target, tmp_path / "run.parquet", *load, "--keep-text")
    assert "".join(kept.stream(0).text or []).strip()


def test_a_duration_ends_the_sending_and_open_streams_finish(target: str, tmp_path: Path) -> None:
    load = ("--concurrency", 3, "--duration", 0.4, "--workers", 2, "--output-tokens", 20)
    done, recording = bench(target, tmp_path / "run.parquet", *load)
    assert done.code == expected_code(done.summary)
    assert set(recording.strings("status")) == {"ok"}
    facts = recording.meta["load"]
    assert facts["drain_ns"] >= facts["started_ns"] + 400_000_000
    assert recording.ints("scheduled_ns").max() < facts["ended_ns"]
    # No stream takes less than its 19 gaps of 5 ms, so a slot cannot have started many.
    assert 3 <= len(recording) <= 3 * (1 + (facts["drain_ns"] - facts["started_ns"]) // 95_000_000)


def test_without_a_url_the_metronome_is_measured(tmp_path: Path) -> None:
    load = ("--concurrency", 2, "--requests", 4, "--output-tokens", 5)
    done = run("bench", *load, cwd=tmp_path)
    assert done.err == ""
    assert "\x1b" not in done.out
    (out,) = tmp_path.iterdir()
    assert out.suffix == ".parquet"
    recording = legato.load(str(out))
    assert list(recording.strings("status")) == ["ok"] * 4
    assert done.code == run("report", out).code


def test_completions_and_prompts_from_a_file_work_too(target: str, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text('one "quoted" prompt\n\n  two wörds  \n')
    load = ("--concurrency", 1, "--requests", 4, "--api", "completions", "--cache-friendly")
    asked = ("--prompt-file", prompts, "--output-tokens", 5)
    done, recording = bench(target, tmp_path / "run.parquet", *asked, *load)
    assert done.code == expected_code(done.summary)
    assert list(recording.ints("prompt_tokens")) == [3, 2, 3, 2]
    assert set(recording.strings("api")) == {"completions"}
