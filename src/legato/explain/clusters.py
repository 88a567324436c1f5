"""Half-widths of 95 % intervals whose samples hang together within a stream and within a stretch
of time. The same rule as the intervals of quantiles: the widest of by streams, by time blocks and
by both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.metrics.gaps import Floats
from legato.metrics.intervals import MIN_GROUPS, STREAM_GROUPS, TIME_BLOCKS, student_975
from legato.recording import Ints


@dataclass(frozen=True, slots=True)
class Clusters:
    """To which stream and which time block each sample belongs."""

    stream: Ints
    block: Ints
    streams: int
    blocks: int


def clusters(stream: Ints, at_ns: Ints) -> Clusters:
    """Streams are numbered anew; blocks are stretches of time with equally many samples."""
    names, number = np.unique(stream, return_inverse=True)
    groups = min(len(names), STREAM_GROUPS)
    wanted = min(TIME_BLOCKS, max(MIN_GROUPS, len(at_ns) // 5))
    edges_ns = np.quantile(at_ns, np.arange(1, wanted) / wanted) if len(at_ns) else at_ns
    block = np.unique(np.searchsorted(edges_ns, at_ns, side="right"), return_inverse=True)[1]
    blocks = int(block.max()) + 1 if len(block) else 0
    return Clusters(np.asarray(number % max(groups, 1), np.int64), block, groups, blocks)


def half_width(influence: Floats, within: Clusters, mass: Floats | None = None) -> float | None:
    """Of a figure that is off by the sum of these influences; none with fewer than five streams
    or five blocks. `mass` says how much of the figure rests on each sample."""
    if within.streams < MIN_GROUPS or within.blocks < MIN_GROUPS:
        return None
    table = _table(influence, within)
    held = _table(np.ones(len(influence)) if mass is None else mass, within)
    by_stream, stream_t = _variance(table.sum(axis=1), held.sum(axis=1))
    by_block, block_t = _variance(table.sum(axis=0), held.sum(axis=0))
    both = max(by_stream + by_block - float((table**2).sum()), 0.0)
    return float(
        max(
            stream_t * np.sqrt(by_stream),
            block_t * np.sqrt(by_block),
            max(stream_t, block_t) * np.sqrt(both),
        )
    )


def _table(values: Floats, within: Clusters) -> Floats:
    """[stream, block]: sums."""
    cell = within.stream * within.blocks + within.block
    sums = np.bincount(cell, values, minlength=within.streams * within.blocks)
    return np.asarray(sums.reshape(within.streams, within.blocks), dtype=np.float64)


def _variance(sums: Floats, mass: Floats) -> tuple[float, float]:
    """(variance of the total, Student factor by the effective number of clusters)."""
    squares = float((mass**2).sum())
    effective = float(mass.sum() ** 2) / squares if squares > 0 else 1.0
    variance = float((sums**2).sum()) * len(sums) / (len(sums) - 1)
    return variance, student_975(max(effective - 1, 1.0))
