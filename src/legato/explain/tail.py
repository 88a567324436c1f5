"""The slowest gaps: what makes them longer than the mean gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.explain.model import Model
from legato.explain.moved import Moved
from legato.explain.part import BURSTS, CAUSES, CLIENT, FITTED, RETRANSMITS, STALLS, UNEXPLAINED
from legato.explain.rest import Rest
from legato.metrics.gaps import Floats, Gaps
from legato.recording import Ints

TAIL_SHARE = 0.01
LEAST_TAIL_GAPS = 10
# Where the slowest gaps are hardly longer than the mean there is nothing to explain.
LEAST_EXCESS = 0.02


@dataclass(frozen=True, slots=True)
class Tail:
    """The slowest 1 % of chunk gaps, and the share of each cause in their excess over the mean."""

    gaps: int
    from_ns: float
    mean_ns: float
    shares: dict[str, float]  # they add up to 1; empty where there is no excess to speak of


def tail(fitted: Model, left: Rest, shifted: Moved, gaps: Gaps) -> Tail | None:
    count = int(len(gaps) * TAIL_SHARE)
    if count < LEAST_TAIL_GAPS:
        return None
    slowest = np.argpartition(gaps.gap_ns, len(gaps) - count)[-count:]
    mean_ns, usual_ns = float(gaps.gap_ns[slowest].mean()), float(gaps.gap_ns.mean())
    shares: dict[str, float] = {}
    if mean_ns > usual_ns * (1 + LEAST_EXCESS):
        shares = {
            cause: (inside_ns - everywhere_ns) / (mean_ns - usual_ns)
            for cause, (inside_ns, everywhere_ns) in _means(fitted, left, shifted, slowest).items()
        }
    return Tail(count, float(gaps.gap_ns[slowest].min()), mean_ns, shares)


def _means(
    fitted: Model, left: Rest, shifted: Moved, slowest: Ints
) -> dict[str, tuple[float, float]]:
    """Per cause its mean in the slowest gaps and in all, ns."""
    by_gap = {BURSTS: shifted.bursts_ns, CLIENT: shifted.client_ns}
    by_read = {
        RETRANSMITS: left.retransmits_ns,
        STALLS: left.stalls_ns,
        UNEXPLAINED: left.unexplained_ns,
    }
    means = {name: (float(v[slowest].mean()), float(v.mean())) for name, v in by_gap.items()}
    for cause in (*FITTED, *by_read):
        value_ns = by_read[cause] if cause in by_read else fitted.of(cause)
        means[cause] = _shared_out(fitted, value_ns, slowest)
    return {cause: means[cause] for cause in CAUSES}


def _shared_out(fitted: Model, value_ns: Floats, slowest: Ints) -> tuple[float, float]:
    """A read's part is shared evenly by its chunks; those that came with the first token have
    the mean."""
    found = fitted.reads
    usual_ns = float(value_ns.sum()) / float(found.chunks.sum())
    whose = found.of_gap[slowest]
    even_ns = np.where(whose >= 0, (value_ns / found.chunks)[whose], usual_ns)
    return float(even_ns.mean()), usual_ns
