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


def test_unevenness_asks_for_a_run_without_other_requests() -> None:
    assert "--concurrency 1" in advice(summaries.uneven())[0]


def test_stalls_of_all_streams_at_once_point_at_the_whole_server() -> None:
    assert "stop together" in advice(summaries.shared_stalls())[0]


def test_timeouts_point_at_the_queue() -> None:
    assert "timed out" in advice(summaries.some_timed_out())[0]


def test_an_invalid_run_gets_no_advice_about_a_pace_that_was_not_judged() -> None:
    summary = summaries.uneven()
    summary["instrument"] |= {"verdict": "invalid"}
    assert advice(summary) == []


@pytest.mark.parametrize("situation", [summaries.stalls, summaries.uneven])
def test_long_gaps_are_explained_next(situation: summaries.Situation) -> None:
    assert next_command(situation())[0] == "legato explain legato-run.parquet"


def test_after_the_built_in_metronome_comes_the_users_own_endpoint() -> None:
    command, purpose = next_command(summaries.embedded())
    assert command == "legato bench http://HOST:8000/v1"
    assert "built-in metronome" in purpose


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


def test_a_client_loaded_beyond_its_calibration_gets_less_load_next() -> None:
    summary = summaries.degraded()
    summary["run"]["calibration"]["limit"] = {"events_per_s": 1000.0}
    command, purpose = next_command(summary)  # 10,000 events in 2.31 s
    assert command == "legato bench http://127.0.0.1:8000/v1 --concurrency 11 --requests 100"
    assert purpose == ("less load: this machine is good for 1,000 events/s, and the run had 4,329")


def test_a_client_that_was_late_within_its_calibration_is_to_be_left_alone() -> None:
    summary = summaries.degraded()
    summary["run"]["calibration"]["limit"] = {"events_per_s": 20_000.0}
    command, purpose = next_command(summary)
    assert command == "legato bench http://127.0.0.1:8000/v1 --concurrency 50 --requests 100"
    assert purpose.startswith("the same load with nothing else running")


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
