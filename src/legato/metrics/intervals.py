"""Confidence intervals of quantiles that respect correlation within a stream and in time.

The share of samples at or below the quantile has a variance: it is summed over streams and over
time blocks, not over samples, and the interval of that share is then read off the sample's own
quantile function (Woodruff's method). Nothing is resampled or sorted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legato.metrics.gaps import Floats
from legato.metrics.samples import Samples, quantile
from legato.recording import Ints

TIME_BLOCKS = 30
# Streams are pooled into at most this many groups: independent streams may be grouped at will,
# and the table of groups × blocks stays small.
STREAM_GROUPS = 1000
MIN_GROUPS = 5

# Time blocks are placed by a systematic sample of this size.
_PLACING_SAMPLES = 20_000

_Z_975 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Interval:
    low_ns: float
    high_ns: float


def quantile_intervals(samples: Samples, shares: Sequence[float]) -> list[Interval | None]:
    """The 95 % interval of each quantile; none where there are too few streams or blocks."""
    if samples.n == 0:
        return [None] * len(shares)
    at = np.asarray([quantile(samples, p) for p in shares], dtype=np.float64)
    counts = _count(samples, at)
    return [
        _woodruff(samples, p, half_width(counts[:, :, j], counts[:, :, -1]))
        for j, p in enumerate(shares)
    ]


def _woodruff(samples: Samples, p: float, half_width: float | None) -> Interval | None:
    """Read the interval of the share p off the sample's quantile function.

    It is laid out on the scale asin √share, where the variance of a share hardly depends on the
    share: a rare share's interval is then as skewed as its distribution, and misses are as
    frequent on one side as on the other.
    """
    if half_width is None:
        return None
    centre = np.arcsin(np.sqrt(p))
    reach = half_width / (2 * np.sqrt(p * (1 - p)))
    low, high = (np.sin(np.clip(centre + sign * reach, 0.0, np.pi / 2)) ** 2 for sign in (-1, 1))
    low_ns, high_ns = quantile(samples, low), quantile(samples, high)
    assert low_ns is not None
    assert high_ns is not None
    return Interval(low_ns, high_ns)


def _count(samples: Samples, at: Floats) -> Floats:
    """[stream group, time block, j]: samples beyond at[j]; the last j counts all samples."""
    groups = stream_group(samples.stream)
    blocks = time_block(samples.at_ns)
    n_groups, n_blocks = int(groups.max()) + 1, int(blocks.max()) + 1
    cell = groups * n_blocks + blocks
    size = n_groups * n_blocks
    starts = [int(np.searchsorted(samples.value_ns, q, side="right")) for q in at]
    table = np.empty((size, len(at) + 1))
    for j, start in enumerate([*starts, 0]):
        table[:, j] = np.bincount(cell[start:], samples.weight[start:], minlength=size)
    return table.reshape(n_groups, n_blocks, len(at) + 1)


def half_width(beyond: Floats, total: Floats) -> float | None:
    """Half the 95 % interval of the share beyond, on its own scale.

    The widest of three: by streams, by time blocks, and by both (the sum of the two less what
    both count), which is the right one when streams differ *and* stalls are shared.
    """
    share = beyond.sum() / total.sum()
    excess = beyond - share * total
    by_stream = _clustered(excess.sum(axis=1), total.sum(axis=1))
    by_block = _clustered(excess.sum(axis=0), total.sum(axis=0))
    if by_stream is None or by_block is None:
        return None
    (stream_variance, stream_t), (block_variance, block_t) = by_stream, by_block
    cell_variance = float((excess**2).sum())
    both = stream_variance + block_variance - cell_variance
    widest = max(
        stream_t * np.sqrt(stream_variance),
        block_t * np.sqrt(block_variance),
        max(stream_t, block_t) * np.sqrt(max(both, 0.0)),
    )
    return float(widest / total.sum())


def _clustered(excess: Floats, total: Floats) -> tuple[float, float] | None:
    """(variance of the summed excess, Student factor) over clusters; none below five.

    Clusters of unequal size carry less information than their number says: the degrees of
    freedom come from the effective number (Kish).
    """
    clusters = int(np.count_nonzero(total))
    if clusters < MIN_GROUPS:
        return None
    effective = float(total.sum() ** 2 / (total**2).sum())
    variance = float((excess**2).sum()) * clusters / (clusters - 1)
    return variance, student_975(max(effective - 1, 1.0))


def stream_group(stream: Ints) -> Ints:
    seen = np.zeros(int(stream.max()) + 1, dtype=bool)
    seen[stream] = True
    rank = np.cumsum(seen) - 1
    return np.asarray(rank[stream] % STREAM_GROUPS, dtype=np.int64)


def time_block(at_ns: Ints) -> Ints:
    """Stretches of time with equally many samples, so that a pause in the run, or between two
    runs reported together, costs no blocks."""
    blocks = min(TIME_BLOCKS, max(MIN_GROUPS, len(at_ns) // 5))
    some_ns = at_ns[:: len(at_ns) // _PLACING_SAMPLES + 1]
    edges_ns = np.quantile(some_ns, np.arange(1, blocks) / blocks)
    return np.asarray(np.searchsorted(edges_ns, at_ns, side="right"), dtype=np.int64)


def student_975(df: float) -> float:
    """The 97.5 % point of Student's t (Cornish–Fisher; within 0.3 % from 4 degrees up)."""
    z = _Z_975
    return (
        z
        + (z**3 + z) / (4 * df)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * df**3)
    )
