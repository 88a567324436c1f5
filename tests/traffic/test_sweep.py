"""Levels and the knee of a sweep, without a target."""

from __future__ import annotations

from pathlib import Path

import pytest

from legato.errors import UsageError
from legato.recording import Recording
from legato.traffic.level import Level, LevelRun
from legato.traffic.sweep import knee, parse_levels

NOTHING = Recording.from_streams([], {})


def affine_level(streams: int, verdict: str = "valid", *, interrupted: bool = False) -> LevelRun:
    """A gap of 16 ms + 2 ms a stream; every stream sends a token each gap."""
    itl_ms = 16.0 + 2.0 * streams
    return LevelRun(
        level=Level("concurrency", streams),
        out=Path("level.parquet"),
        recording=NOTHING,
        summary={
            "streams": {"ok": 10},
            "itl_ms": {"p50": itl_ms},
            "tps": {"system": streams * 1000 / itl_ms},
            "instrument": {"verdict": verdict, "reasons": []},
        },
        steady={},
        trimmed={},
        interrupted=interrupted,
    )


def test_the_knee_of_an_affine_gap_is_where_its_two_parts_are_equal() -> None:
    found = knee([affine_level(n) for n in (1, 2, 4, 8, 16, 32)])
    assert found is not None
    assert found["concurrency"] == 8
    assert not found["at_end"]


def test_a_knee_at_the_highest_level_may_lie_beyond() -> None:
    found = knee([affine_level(n) for n in (1, 2, 4)])
    assert found is not None
    assert (found["concurrency"], found["at_end"]) == (4, True)


def test_levels_that_are_no_measurement_do_not_decide_the_knee() -> None:
    levels = [affine_level(4), affine_level(8, "invalid"), affine_level(32)]
    found = knee(levels)
    assert found is not None
    assert found["concurrency"] == 4
    assert knee([affine_level(4), affine_level(8, "invalid")]) is None
    assert knee([affine_level(4), affine_level(8, interrupted=True)]) is None


def test_levels_are_run_in_rising_order_and_once_each() -> None:
    assert [level.value for level in parse_levels("8,1,2,2", None)] == [1, 2, 8]
    assert [level.value for level in parse_levels(None, "0.5,10,2")] == [0.5, 2, 10]
    assert [str(level) for level in parse_levels("1,2", None)] == ["1 stream", "2 streams"]


@pytest.mark.parametrize(
    "text", ["", "1,,2", "1.5", "-1", "1;2", "nan", ",".join(map(str, range(1, 200)))]
)
def test_levels_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--concurrency"):
        parse_levels(text, None)
