"""One run's figures and two sides' comparison: the summary's values, and honest intervals."""

from __future__ import annotations

import numpy as np
import pytest
from compared_runs import run, side

from legato.compare.comparison import compare
from legato.compare.estimate import Figure, estimates
from legato.expressions import METRICS, STATISTICS, TIMES, value_in
from legato.metrics.summary import summarise

P50 = Figure("itl", "p50")


def every_figure() -> list[Figure]:
    times = [Figure(metric, statistic) for metric in TIMES for statistic in STATISTICS]
    return times + [Figure(metric) for metric in METRICS if metric not in TIMES]


def test_every_figure_is_the_summarys_own() -> None:
    made = run(1, failed=7)
    told, summary = estimates(made, every_figure()), summarise(made)
    for figure in every_figure():
        value = value_in(summary, figure.metric, figure.statistic)
        if value is None:
            assert figure not in told
        else:
            assert told[figure].value == pytest.approx(value), figure


def test_the_interval_of_a_gap_quantile_is_the_summarys() -> None:
    made = run(2)
    told = estimates(made, [P50])[P50]
    assert [told.low, told.high] == pytest.approx(summarise(made)["itl_ms"]["ci95"]["p50"])


@pytest.mark.parametrize("figure", [Figure("itl", "mean"), Figure("itl", "std"), Figure("error")])
def test_moments_and_shares_have_an_interval_around_them(figure: Figure) -> None:
    told = estimates(run(3, failed=20), [figure])[figure]
    assert told.low is not None
    assert told.high is not None
    assert told.low < told.value < told.high


def test_the_interval_of_the_mean_is_as_wide_as_the_spread_of_means_over_runs() -> None:
    mean = Figure("itl", "mean")
    told = [estimates(run(seed), [mean])[mean] for seed in range(60)]
    spread = 2 * 1.96 * float(np.std([one.value for one in told]))
    widths = [one.high - one.low for one in told if one.high is not None and one.low is not None]
    assert 0.7 * spread < float(np.mean(widths)) < 1.5 * spread


def test_a_slower_side_is_found_and_its_size_told() -> None:
    (found,) = compare(side("A", run(1)), [side("B", run(2, gap_ms=11))])
    assert found.primary is not None
    assert found.primary.shown
    assert found.primary.ratio is not None
    assert found.primary.ratio.low is not None
    assert found.primary.ratio.high is not None
    assert found.primary.ratio.low < 1.1 < found.primary.ratio.high
    assert found.ranked is not None
    assert found.ranked.unit == "streams"
    assert found.ranked.test.p < 0.001
    assert found.ranked.effect.shift == pytest.approx(1.0, abs=0.4)


def test_one_process_compared_with_itself_seldom_differs() -> None:
    alarms = 0
    for seed in range(30):
        (found,) = compare(side("A", run(1000 + seed)), [side("B", run(2000 + seed))])
        assert found.primary is not None
        alarms += found.primary.shown
    assert alarms <= 5


def test_with_one_run_a_side_streams_are_the_unit_and_with_several_runs_are() -> None:
    (one,) = compare(side("A", run(1)), [side("B", run(2))])
    (several,) = compare(side("A", run(1), run(2)), [side("B", run(3), run(4))])
    assert {change.basis for change in one.changes} == {"streams"}
    assert {change.basis for change in several.changes} == {"runs"}
    assert several.ranked is not None
    assert (several.ranked.unit, several.ranked.n) == ("runs", (2, 2))


def test_the_primary_figure_is_not_corrected_and_all_others_are() -> None:
    (found,) = compare(side("A", run(1)), [side("B", run(2))], primary=Figure("itl", "p90"))
    assert found.primary is not None
    assert found.primary.p_holm == found.primary.p
    others = [c for c in found.changes if c.p is not None and c.figure != Figure("itl", "p90")]
    assert all((c.p_holm or 0) > (c.p or 0) for c in others if (c.p or 0) < 0.02)


def test_who_compares_with_several_corrects_the_primary_figure_too() -> None:
    candidates = [side(letter, run(seed)) for letter, seed in (("B", 2), ("C", 3), ("D", 4))]
    found = compare(side("A", run(1)), candidates)
    ps = [one.primary.p or 0 for one in found if one.primary]
    assert found[int(np.argmin(ps))].primary.p_holm == pytest.approx(min(1.0, 3 * min(ps)))  # type: ignore[union-attr]


def test_a_figure_that_one_side_withholds_is_not_compared() -> None:
    (found,) = compare(side("A", run(1)), [side("B", run(2, streams=20, tokens=10))])
    assert found.change_of(Figure("itl", "p999")) is None
    assert found.change_of(P50) is not None


def test_readings_of_a_gap_are_compared_apart_only_where_chunks_hold_several_tokens() -> None:
    (plain,) = compare(side("A", run(1)), [side("B", run(2))])
    (grouped,) = compare(side("A", run(1)), [side("B", run(2, chunk_tokens=2))])
    assert plain.change_of(Figure("chunk_gap", "p50")) is None
    assert grouped.change_of(Figure("chunk_gap", "p50")) is not None
