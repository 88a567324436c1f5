"""Several recordings as one: what adds up is added, what differs is named, each keeps its own."""

from __future__ import annotations

from typing import Any

from legato.joined import combined
from legato.metrics.summary import summarise
from legato.recording import CONTENT, Recording, Stream, concatenate

S = 1_000_000_000
MS = 1_000_000


def _run(start_s: int, *, streams: int = 2, asked: int = 2, steps: int = 0) -> Recording:
    """Streams of 20 tokens, 10 ms apart, all sent at `start_s`; they end the load."""
    start = start_s * S
    made = [
        Stream(
            stream_id=number,
            scheduled_ns=start,
            sent_ns=start,
            ended_ns=start + 200 * MS,
            status="ok",
            arrival_ns=[10 * MS * (token + 1) for token in range(20)],
            lag_ns=[0] * 20,
            early_ns=[0] * 20,
            read_index=list(range(20)),
            segments=[1] * 20,
            tokens=[1] * 20,
            kind=[CONTENT] * 20,
            flags=[0] * 20,
        )
        for number in range(streams)
    ]
    meta: dict[str, Any] = {
        "settings": {"mode": "closed", "concurrency": asked, "url": "http://a/v1"},
        "clock": {"anchor_width_ns": 100, "steps": steps},
        "load": {
            "started_ns": start,
            "ended_ns": start + 200 * MS,
            "drain_ns": start + 150 * MS,
            "cpu_share": 0.1 * asked,
            "lost_streams": 0,
            "workers_lost": 0,
            "retried": 1,
        },
    }
    return Recording.from_streams(made, meta)


def test_the_verdict_is_the_worst_of_any_recording_whatever_the_order() -> None:
    good, bad = _run(0), _run(100, streams=1, asked=2)
    assert summarise(good)["instrument"]["verdict"] == "valid"
    assert summarise(bad)["instrument"]["verdict"] == "invalid"
    for order in ([good, bad], [bad, good]):
        found = summarise(concatenate(order))["instrument"]
        assert found["verdict"] == "invalid"
        number = order.index(bad) + 1
        assert all(reason.startswith(f"recording {number}: ") for reason in found["reasons"])


def test_the_duration_is_the_time_in_which_any_of_them_ran() -> None:
    assert summarise(concatenate([_run(0), _run(100)]))["run"]["duration_s"] == 0.4
    assert summarise(concatenate([_run(0), _run(0)]))["run"]["duration_s"] == 0.2


def test_rates_of_a_fleet_add_and_rates_of_a_sequence_average() -> None:
    alone = summarise(_run(0))["tps"]["system"]
    assert alone is not None
    one_after_the_other = summarise(concatenate([_run(0), _run(100)]))["tps"]["system"]
    together = summarise(concatenate([_run(0), _run(0)]))["tps"]["system"]
    assert one_after_the_other == alone
    assert together == 2 * alone


def test_settings_that_differ_are_named_and_taken_from_none() -> None:
    joined = concatenate([_run(0, asked=2), _run(1, asked=1)])
    assert joined.meta["settings"] == {
        "mode": "closed",
        "concurrency": None,
        "url": "http://a/v1",
        "differs": ["concurrency"],
    }


def test_losses_add_and_the_busiest_worker_counts() -> None:
    meta = concatenate([_run(0, asked=2, steps=1), _run(1, asked=1), _run(2)]).meta
    assert meta["load"]["retried"] == 3
    assert meta["load"]["cpu_share"] == 0.2
    assert meta["clock"]["steps"] == 1


def test_joining_joined_recordings_keeps_every_part() -> None:
    nested = concatenate([concatenate([_run(0), _run(1)]), _run(2)])
    assert [len(part) for part in nested.parts()] == [2, 2, 2]
    assert [part.ints("sent_ns")[0] for part in nested.parts()] == [0, S, 2 * S]


def test_a_floor_is_known_only_where_every_part_was_calibrated() -> None:
    low, high = ({"floor_us": {"p50": p, "p99": 9 * p}} for p in (1.0, 2.0))
    assert combined([{"calibration": low}, {"calibration": high}])["calibration"] == high
    assert combined([{"calibration": low}, {}])["calibration"] is None
