from __future__ import annotations

import shlex

import pytest
import summaries

from legato.report.advice import advice, next_command


def test_a_smooth_run_needs_no_advice() -> None:
    assert advice(summaries.smooth()) == []


def test_bursts_of_events_point_at_a_proxy_and_bursts_inside_an_event_at_speculation() -> None:
    assert "proxy" in advice(summaries.bursty())[0]
    assert "Speculative decoding" in advice(summaries.multi_token())[0]


def test_stalls_ask_for_a_run_without_other_requests() -> None:
    assert "--concurrency 1" in advice(summaries.stalls())[0]


def test_guessed_tokens_ask_for_a_tokenizer() -> None:
    assert "--tokenizer" in advice(summaries.partial())[0]


def test_an_endpoint_that_does_not_stream_points_at_the_flag_and_the_proxy() -> None:
    (said,) = advice(summaries.not_streaming())
    assert "stream: true" in said
    assert "proxy" in said


def test_a_valid_run_is_followed_by_its_figures_for_a_program() -> None:
    command, _ = next_command(summaries.smooth())
    assert command == "legato report legato-run.parquet --json"


def test_a_command_survives_the_shell_whatever_the_paths_are_called() -> None:
    summary = summaries.smooth()
    paths = ["a run; rm -rf.parquet", "it's.parquet"]
    summary["run"]["recording"] = paths
    command, _ = next_command(summary)
    assert shlex.split(command) == ["legato", "report", *paths, "--json"]


@pytest.mark.parametrize("situation", [summaries.degraded, summaries.invalid])
def test_a_client_that_was_late_is_calibrated_next(situation: summaries.Situation) -> None:
    assert next_command(situation())[0] == "legato calibrate"


def test_a_load_that_was_not_held_by_a_client_that_kept_up_is_repeated_for_longer() -> None:
    summary = summaries.invalid()
    summary["instrument"]["client_merged_share"] = 0.0
    assert next_command(summary)[0] == (
        "legato bench http://127.0.0.1:8000/v1 --concurrency 50 --requests 500"
    )


def test_after_a_failure_one_request_is_tried_alone() -> None:
    assert next_command(summaries.all_failed())[0] == (
        "legato bench http://127.0.0.1:8000/v1 --concurrency 1 --requests 1"
    )
