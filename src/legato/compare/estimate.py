"""One figure of one run with its 95 % interval, wherever a run can tell one.

Intervals respect correlation within a stream and between streams open together: quantiles by the
method of `metrics.intervals`; means, standard deviations and shares by the same clustered
variance. Values are in the summary's units: ms, shares of one, tokens a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from legato.expressions import SHARES, TIMES
from legato.metrics import intervals, occupancy, samples
from legato.metrics.distribution import QUANTILES
from legato.metrics.gaps import Floats
from legato.metrics.samples import NS_PER_MS, Samples
from legato.metrics.streams import own_figure, share_parts
from legato.metrics.summary import Measured, measure
from legato.metrics.windows import windows_ns
from legato.recording import Ints, Recording

_OF_GAPS = {
    "itl": samples.spread_evenly,
    "itl_zeros": samples.zeros_then_gap,
    "chunk_gap": samples.chunk_gaps,
}
_OF_CUT_STREAMS_TOO = ("ttft", "ttft_intended", "ttft_any", "tps.stream")


@dataclass(frozen=True, slots=True, order=True)
class Figure:
    """What is compared: a metric and, for a time, a statistic of it."""

    metric: str
    statistic: str | None = None

    def __str__(self) -> str:
        return self.metric if self.statistic is None else f"{self.metric}.{self.statistic}"

    @property
    def is_share(self) -> bool:
        return self.metric in SHARES

    @property
    def is_time(self) -> bool:
        return self.metric in TIMES


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and, where the run tells one, its 95 % interval and on how much that rests."""

    value: float
    low: float | None = None
    high: float | None = None
    df: float = math.inf  # independent looks at the run, less one


def estimates(recording: Recording, figures: Iterable[Figure]) -> dict[Figure, Estimate]:
    """Each figure the recording tells; a quantile that few samples support is left out."""
    measured = measure(recording)
    wanted: dict[str, list[Figure]] = {}
    for figure in figures:
        wanted.setdefault(figure.metric, []).append(figure)
    found: dict[Figure, Estimate] = {}
    for metric, asked in wanted.items():
        if metric in SHARES:
            found |= _share(recording, measured, asked[0])
        elif metric == "tps.system":
            found |= _system_rate(recording, measured, asked[0])
        elif metric != "goodput":
            found |= _distribution(population(recording, measured, metric), asked)
    return found


def population(recording: Recording, measured: Measured, metric: str) -> Samples:
    """The samples a time's statistics are taken from, as the summary takes them. Those of
    tps.stream are rates × 10⁶, so that its median reads like a time's."""
    if metric in _OF_GAPS:
        return _OF_GAPS[metric](measured.gaps)
    own = own_figure(recording, metric, None, measured)
    assert own is not None
    counted = own.known & measured.streams
    if metric not in _OF_CUT_STREAMS_TOO:
        counted &= measured.ok
    stream = np.flatnonzero(counted)
    window_ns = sent_windows_ns(recording, measured, metric)[stream]
    return samples.per_stream(own.value[stream] * NS_PER_MS, stream, window_ns)


def sent_windows_ns(recording: Recording, measured: Measured, metric: str) -> Ints:
    """For each stream the start of the stretch of time it was sent in."""
    times = measured.times
    open_ns = times.ttft_ns if metric.startswith("ttft") else times.e2e_ns
    return windows_ns(recording.ints("sent_ns"), open_ns)


def clustered_half_width(part: Floats, whole: Floats, stream: Ints, at_ns: Ints) -> float | None:
    """Half the 95 % interval of Σ part ÷ Σ whole; none with too few streams or time blocks."""
    if not len(part) or not whole.sum() > 0:
        return None
    groups, blocks = intervals.stream_group(stream), intervals.time_block(at_ns)
    shape = int(groups.max()) + 1, int(blocks.max()) + 1
    cell = groups * shape[1] + blocks
    size = shape[0] * shape[1]
    parts, wholes = (np.bincount(cell, of, size).astype(np.float64) for of in (part, whole))
    return intervals.half_width(parts.reshape(shape), wholes.reshape(shape))


def degrees_of_freedom(stream: Ints, at_ns: Ints) -> float:
    """Of an interval over streams and time blocks: the fewer of the two, less one."""
    clusters = intervals.stream_group(stream), intervals.time_block(at_ns)
    return float(min(np.count_nonzero(np.bincount(of)) for of in clusters) - 1)


def _distribution(of: Samples, asked: list[Figure]) -> dict[Figure, Estimate]:
    found: dict[Figure, Estimate] = {}
    if not of.n:
        return found
    df = degrees_of_freedom(of.stream, of.at_ns)
    quantiles = [figure for figure in asked if (figure.statistic or "p50") in QUANTILES]
    shares = [QUANTILES[figure.statistic or "p50"] for figure in quantiles]
    kept = [samples.supported(of, p) for p in shares]
    quantiles = [figure for figure, keep in zip(quantiles, kept, strict=True) if keep]
    shares = [p for p, keep in zip(shares, kept, strict=True) if keep]
    ends = intervals.quantile_intervals(of, shares)
    for figure, p, interval in zip(quantiles, shares, ends, strict=True):
        value_ns = samples.quantile(of, p)
        assert value_ns is not None
        low_ns, high_ns = (interval.low_ns, interval.high_ns) if interval else (None, None)
        found[figure] = Estimate(value_ns / NS_PER_MS, _ms(low_ns), _ms(high_ns), df)
    for figure in asked:
        if figure.statistic in ("mean", "std", "max"):
            found[figure] = _moment(of, figure.statistic, df)
    return found


def _moment(of: Samples, statistic: str, df: float) -> Estimate:
    """Mean, standard deviation or maximum, with an interval that cannot reach below zero."""
    value_ms, weight = of.value_ns / NS_PER_MS, of.weight.astype(np.float64)
    if statistic == "max":
        return Estimate(float(value_ms[-1]))
    mean = float((value_ms * weight).sum() / of.n)
    if statistic == "mean":
        reach = clustered_half_width(value_ms * weight, weight, of.stream, of.at_ns)
        return _around(mean, reach, mean, df)
    squares = (value_ms - mean) ** 2 * weight
    variance = float(squares.sum() / of.n)
    reach = clustered_half_width(squares, weight, of.stream, of.at_ns)
    # d log σ = d variance ÷ (2 variance)
    return _around(math.sqrt(variance), reach, 2 * variance, df)


def _around(value: float, reach: float | None, scale: float, df: float) -> Estimate:
    """An interval laid out on the logarithm of a positive value."""
    if reach is None or value <= 0:
        return Estimate(value)
    factor = math.exp(min(reach / scale, 50.0))
    return Estimate(value, value / factor, value * factor, df)


def _share(recording: Recording, measured: Measured, figure: Figure) -> dict[Figure, Estimate]:
    if figure.metric == "error":
        stream = np.flatnonzero(measured.streams)
        part = (~measured.ok[stream]).astype(np.float64)
        whole, at_ns = np.ones(len(stream)), recording.ints("scheduled_ns")[stream]
    else:
        part, whole, stream, at_ns = share_parts(measured.chunks, measured.gaps, figure.metric)
    if not whole.sum() > 0:
        return {}
    value = float(part.sum() / whole.sum())
    reach = clustered_half_width(part, whole, stream, at_ns)
    if reach is None:
        return {figure: Estimate(value)}
    df = degrees_of_freedom(stream, at_ns)
    return {figure: Estimate(value, max(0.0, value - reach), min(1.0, value + reach), df)}


def _system_rate(
    recording: Recording, measured: Measured, figure: Figure
) -> dict[Figure, Estimate]:
    occupied = occupancy.occupancy(recording)
    tps = occupancy.throughput(recording, occupied, measured.chunks, measured.times)
    return {} if tps["system"] is None else {figure: Estimate(tps["system"])}


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / NS_PER_MS
