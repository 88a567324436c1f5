"""`--fail-if`: a real change beyond the limit fails, chance does not, the unknown does not pass."""

from __future__ import annotations

from compared_runs import run, side

from legato.compare.comparison import Comparison, compare
from legato.compare.gate import Gate, figure_of, judge
from legato.compare.words import gate_words
from legato.expressions import parse


def compared(gap_ms: float, *texts: str, spread: float = 0.3, failed: int = 0) -> Comparison:
    wanted = [figure_of(c) for text in texts for c in parse(text, relative=True)]
    b = run(2, gap_ms=gap_ms, spread=spread, failed=failed)
    return compare(side("A", run(1)), [side("B", b)], asked=wanted)[0]


def gate(text: str, gap_ms: float = 10.0, spread: float = 0.3, failed: int = 0) -> Gate:
    comparison = compared(gap_ms, text, spread=spread, failed=failed)
    return judge(text, parse(text, relative=True), comparison)


def test_a_change_beyond_the_limit_fails() -> None:
    assert not gate("itl.p50>+5%", gap_ms=12).passed


def test_a_change_within_the_limit_passes() -> None:
    assert gate("itl.p50>+5%", gap_ms=10.2).passed


def test_a_change_that_chance_may_explain_passes() -> None:
    found = gate("itl.p50>+0%", gap_ms=10.0)
    assert found.passed
    value = found.judged[0].value
    assert value is not None
    if value > 0:
        assert "chance may explain" in gate_words(found)


def test_a_gain_that_did_not_come_fails_though_nothing_got_worse() -> None:
    assert not gate("itl.p50>-10%", gap_ms=10.0).passed
    assert gate("itl.p50>-10%", gap_ms=8.0).passed


def test_a_difference_has_the_figures_own_unit() -> None:
    assert not gate("itl.p50>+1ms", gap_ms=12).passed
    assert gate("itl.p50>+3ms", gap_ms=12).passed
    assert not gate("error>+5pp", failed=30).passed


def test_a_value_without_a_sign_is_the_candidates_own() -> None:
    assert not gate("itl.p50>11ms", gap_ms=12).passed
    assert gate("itl.p50>13ms", gap_ms=12).passed


def test_a_comma_means_and() -> None:
    assert gate("itl.p50>+5%,error>1%", gap_ms=12).passed
    assert not gate("itl.p50>+5%,error>1%", gap_ms=12, failed=30).passed


def test_failures_out_of_nothing_are_an_endless_change() -> None:
    assert not gate("error>+50%", failed=30).passed
    assert gate("error>+50%").passed


def test_what_is_not_known_does_not_pass() -> None:
    # One value a stream, 100 streams: no p999.
    found = gate("ttft.p999>+5%")
    assert found.verdict == "unknown"
    assert not found.passed
    assert "not known" in gate_words(found)


def test_what_has_no_interval_cannot_be_told_from_chance() -> None:
    found = gate("itl.max>+1%", gap_ms=20)
    assert not found.passed
    assert "cannot tell from chance" in gate_words(found)
