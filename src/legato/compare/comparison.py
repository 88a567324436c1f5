"""One side against another: every figure's change, the rank test and the effect size.

It decides which figures are looked at and which streams or runs are the unit; the arithmetic is
in `change` and `ranks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from legato.compare.change import Change, changed, corrected
from legato.compare.estimate import (
    Estimate,
    Figure,
    clustered_half_width,
    estimates,
    sent_windows_ns,
)
from legato.compare.ranks import Effect, RankTest, effect, mann_whitney
from legato.metrics.gaps import Floats
from legato.metrics.streams import own_figure
from legato.metrics.summary import measure
from legato.recording import Ints, Recording

DEFAULT_PRIMARY = Figure("itl", "p50")
_QUANTILES = ("p50", "p90", "p95", "p99", "p999")
_SHARES_AND_RATES = (
    "tps.stream",
    "tps.system",
    "error",
    "fluidity",
    "stall_ratio",
    "burst_share",
)


@dataclass(frozen=True, slots=True)
class Side:
    """The runs of one thing that is compared."""

    letter: str
    names: tuple[str, ...]
    runs: tuple[Recording, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The rank test and effect size of one figure. Each stream is judged by its own; with
    several runs a side the test is on the runs, and the effect on the pooled streams."""

    figure: Figure
    unit: str  # "streams" or "runs"
    n: tuple[int, int]
    test: RankTest
    effect: Effect


@dataclass(frozen=True, slots=True)
class Comparison:
    baseline: Side
    candidate: Side
    primary_figure: Figure
    changes: tuple[Change, ...]  # of all figures that both sides tell, the primary one too
    ranked: Ranked | None

    @property
    def primary(self) -> Change | None:
        return self.change_of(self.primary_figure)

    def change_of(self, figure: Figure) -> Change | None:
        return next((c for c in self.changes if c.figure == figure), None)


def compare(
    baseline: Side,
    candidates: Sequence[Side],
    *,
    primary: Figure = DEFAULT_PRIMARY,
    asked: Iterable[Figure] = (),
    paired: bool = False,
) -> list[Comparison]:
    """Each candidate against the baseline; `asked` are figures wanted beside the usual ones.

    The primary figure of all candidates is one family of tests, all other figures another: who
    compares nine providers looks nine times.
    """
    runs = [run for side in (baseline, *candidates) for run in side.runs]
    figures = dict.fromkeys([*_usual(runs), primary, *asked])
    told_a = _estimates(baseline, figures)
    found = []
    for side in candidates:
        told_b = _estimates(side, figures)
        changes = [
            changed(figure, told_a[figure], told_b[figure], paired=paired)
            for figure in figures
            if figure in told_a and figure in told_b
        ]
        ranked = _ranked(baseline, side, primary, told_a, told_b)
        found.append(Comparison(baseline, side, primary, tuple(changes), ranked))
    return _corrected(found)


def _corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    fixed: dict[tuple[str, Figure], Change] = {}
    for primary in (True, False):
        family = {
            (one.candidate.letter, change.figure): change
            for one in comparisons
            for change in one.changes
            if (change.figure == one.primary_figure) == primary
        }
        fixed |= zip(family, corrected(list(family.values())), strict=True)
    return [
        replace(one, changes=tuple(fixed[one.candidate.letter, c.figure] for c in one.changes))
        for one in comparisons
    ]


def _usual(runs: Sequence[Recording]) -> list[Figure]:
    metrics = ["itl"]
    if any((run.tokens > 1).any() for run in runs):
        # Else a chunk is a token, and the three readings of a gap are one.
        metrics += ["itl_zeros", "chunk_gap"]
    metrics.append("ttft")
    if any((run.meta.get("settings") or {}).get("mode") == "open" for run in runs):
        metrics.append("ttft_intended")
    metrics += ["tpot", "e2e"]
    figures = [Figure("itl", s) for s in ("mean", "std", *_QUANTILES, "max")]
    figures += [Figure(m, s) for m in metrics[1:] for s in ("mean", *_QUANTILES)]
    return figures + [Figure(name) for name in _SHARES_AND_RATES]


def _estimates(side: Side, figures: Iterable[Figure]) -> dict[Figure, list[Estimate]]:
    """Figures that every run of the side tells."""
    told = [estimates(run, figures) for run in side.runs]
    return {f: [run[f] for run in told] for f in figures if all(f in run for run in told)}


# --- ranks ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OwnValues:
    value: Floats
    stream: Ints
    sent_ns: Ints

    def half_width(self, of: Floats) -> float | None:
        return clustered_half_width(of, np.ones(len(of)), self.stream, self.sent_ns)


def _ranked(
    baseline: Side,
    candidate: Side,
    primary: Figure,
    told_a: dict[Figure, list[Estimate]],
    told_b: dict[Figure, list[Estimate]],
) -> Ranked | None:
    figure = primary
    if own_figure(baseline.runs[0], figure.metric, figure.statistic) is None:
        figure = DEFAULT_PRIMARY  # what only a whole run has cannot rank streams
    a, b = _own_values(baseline, figure), _own_values(candidate, figure)
    if not len(a.value) or not len(b.value):
        return None
    single = len(baseline.runs) == len(candidate.runs) == 1
    # Streams of several runs are no simple clusters: their pooled delta has no interval.
    reach = (a.half_width, b.half_width) if single else None
    size = effect(a.value, b.value, reach)
    if single:
        n = len(a.value), len(b.value)
        return Ranked(figure, "streams", n, mann_whitney(a.value, b.value), size)
    if figure not in told_a or figure not in told_b:
        return None
    of_a, of_b = (np.asarray([e.value for e in told[figure]]) for told in (told_a, told_b))
    return Ranked(figure, "runs", (len(of_a), len(of_b)), mann_whitney(of_a, of_b), size)


def _own_values(side: Side, figure: Figure) -> _OwnValues:
    values, streams, sents = [], [], []
    before = 0
    for run in side.runs:
        measured = measure(run)
        own = own_figure(run, figure.metric, figure.statistic, measured)
        assert own is not None
        chosen = np.flatnonzero(own.known & measured.streams)
        values.append(own.value[chosen])
        streams.append(chosen + before)
        sents.append(sent_windows_ns(run, measured, figure.metric)[chosen])
        before += len(run)
    return _OwnValues(np.concatenate(values), np.concatenate(streams), np.concatenate(sents))
