"""The fitted part of the gaps: decode steps, position, context, load, starts, tokens a chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.explain.clusters import Clusters, clusters
from legato.explain.exposure import Column, columns, starts
from legato.explain.fit import Fit, fit, independent
from legato.explain.part import FITTED, STARTS, Part
from legato.explain.reads import Reads
from legato.metrics.gaps import Floats, Gaps, Mask, stream_times, token_chunks
from legato.metrics.occupancy import occupancy
from legato.recording import Recording

# Answers so short that leaving out their last wait would leave out most.
MOST_LAST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Model:
    """What was fitted, on which reads."""

    reads: Reads
    kept: list[Column]  # those that could be told apart
    fitted: Fit
    within: Clusters
    per_token: float  # turns a sum over reads into a mean per token

    def of(self, cause: str) -> Floats:
        """What goes with a cause in each read, ns."""
        parts = [
            column.value * beta
            for column, beta in zip(self.kept, self.fitted.beta, strict=True)
            if column.cause == cause
        ]
        return np.asarray(sum(parts, np.zeros(len(self.reads))), dtype=np.float64)

    def part(self, cause: str) -> Part:
        chosen = np.asarray([column.cause == cause for column in self.kept])
        if not chosen.any():
            return Part(cause)
        totals = np.asarray([column.value.sum() for column in self.kept]) * chosen
        weights = totals * self.per_token
        return Part(
            cause,
            float(self.fitted.beta @ weights),
            self.fitted.half_width(weights, self.within),
            self._units(weights, chosen),
        )

    def _units(self, weights: Floats, chosen: Mask) -> float:
        """How much of a cause a token met. Several columns may see the same starts: they are
        counted by those that found a cost."""
        counting = np.asarray([column.counts_units for column in self.kept]) & chosen
        if not counting.any():
            return 0.0
        costs = np.abs(self.fitted.beta * weights)
        shares = costs * counting
        shares[np.flatnonzero(counting)[0]] += costs[~counting].sum()
        total = shares.sum()
        return float(shares @ weights / total) if total else float(weights[counting].sum())


def model(recording: Recording, found: Reads, gaps: Gaps) -> Model:
    everyone = stream_times(token_chunks(recording, np.ones(len(recording), dtype=bool)))
    made = columns(recording, found, occupancy(recording), starts(recording, everyone))
    # The last wait of a stream is left out of the fit: when it ends, a load of fixed size sends
    # the next request, so what starts around it depends on how long it was.
    counts = ~found.last if found.last.mean() < MOST_LAST_SHARE else np.ones(len(found), bool)
    kept = _told_apart(made, counts)
    try:
        fitted = _fit(found, kept, counts)
    except np.linalg.LinAlgError:
        # No start that an instrument saw lay inside a wait: starts cannot be told.
        kept = [column for column in kept if column.cause != STARTS]
        fitted = _fit(found, kept, counts)
    # The chunks that came in one read with the first token have a gap, of no length: they are
    # taken to cost what the others cost, and `bursts` takes it off again.
    scale = len(gaps) / int(found.chunks.sum())
    return Model(
        found, kept, fitted, clusters(found.stream, found.end_ns), scale / int(gaps.tokens.sum())
    )


def _fit(found: Reads, kept: list[Column], counts: Mask) -> Fit:
    return fit(
        found.wait_ns.astype(np.float64),
        np.column_stack([column.value for column in kept]),
        np.column_stack([column.instrument for column in kept]),
        counts,
    )


def _told_apart(made: list[Column], counts: Mask) -> list[Column]:
    instruments = np.column_stack([column.instrument[counts] for column in made])
    kept = [made[i] for i in independent(instruments)]
    values = np.column_stack([column.value[counts] for column in kept])
    return [kept[i] for i in independent(values)]


def fitted_parts(fitted: Model) -> dict[str, Part]:
    return {cause: fitted.part(cause) for cause in FITTED}
