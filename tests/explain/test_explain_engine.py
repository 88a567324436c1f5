"""Prefill as engines really do it: a step late, after a queue, or in pieces."""

from __future__ import annotations

import pytest
from stepped import Engine, run

from legato.explain.attribution import attribute
from legato.explain.part import Part

MS = 1e6


def parts(engine: Engine) -> dict[str, Part]:
    found = attribute(run(engine, rate=5, requests=120, tokens=80))
    assert found is not None
    return {part.cause: part for part in found.parts}


@pytest.mark.parametrize(
    "engine",
    [Engine(), Engine(per_stream_ms=0.3), Engine(most_open=6)],
    ids=["in the next step", "with a cost of load", "after a queue"],
)
def test_a_prefill_that_everyone_waits_for_is_what_a_start_costs(engine: Engine) -> None:
    found = parts(engine)
    assert found["starts"].effect_ns == pytest.approx(40 * MS, rel=0.05)
    assert abs(found["unexplained"].mean_ns or 0) < 0.05 * MS
    assert found["starts"].tail_share is not None
    assert found["starts"].tail_share > 0.8
    if engine.per_stream_ms:
        assert found["in_flight"].effect_ns == pytest.approx(0.3 * MS, rel=0.05)


def test_a_prefill_in_pieces_is_found_in_every_step_it_takes() -> None:
    found = parts(Engine(prefill_steps=3))
    assert found["starts"].effect_ns == pytest.approx(40 * MS, rel=0.25)
    assert found["starts"].tail_share is not None
    assert found["starts"].tail_share > 0.8


def test_starts_that_cost_nothing_are_found_to_cost_nothing() -> None:
    starts = parts(Engine(prefill_ms=0))["starts"]
    assert starts.effect_ns is not None
    assert abs(starts.effect_ns) < 0.2 * MS
