"""Figures of each stream by itself: its own ITL quantile, its TTFT, its fluidity.

Goodput and rank tests ask how single streams fared; nothing is pooled or withheld here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.metrics import gaps, smoothness
from legato.metrics.distribution import QUANTILES
from legato.metrics.gaps import Floats, Gaps, Mask, TokenChunks
from legato.metrics.samples import NS_PER_MS, Samples, chunk_gaps, spread_evenly, zeros_then_gap
from legato.metrics.summary import Measured, measure
from legato.recording import Ints, Recording

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Own:
    """One value for each stream of a recording; meaningless where it is not `known`."""

    value: Floats  # ms, a share of one, or tokens a second
    known: Mask


def whole_streams(recording: Recording) -> Mask:
    """Streams that ended well, warm-up left out."""
    return measure(recording).ok


def own_figure(
    recording: Recording, metric: str, statistic: str | None, measured: Measured | None = None
) -> Own | None:
    """The metric of each stream by itself; none for a metric that only a whole run has.

    TTFT, TPOT, E2E and decode time are one value a stream, whatever the statistic. Whoever has
    the recording `measured` already may give it, since measuring takes a pass over all chunks.
    """
    measured = measured or measure(recording)
    if metric in _SPREAD:
        samples = _SPREAD[metric](measured.gaps)
        return _own_statistic(samples, statistic or "p50", len(recording))
    if metric == "tps.stream" or metric in _OF_TIMES:
        return _own_time(recording, measured.times, metric)
    if metric in ("fluidity", "stall_ratio", "burst_share"):
        return _own_share(measured.chunks, measured.gaps, metric, len(recording))
    if metric == "ttft_any":
        first_ns = gaps.first_chunk_ns(recording)
        streams = measured.streams & (recording.strings("status") != "not_streaming")
        return Own(first_ns / NS_PER_MS, streams & (first_ns >= 0))
    return None


_SPREAD = {"itl": spread_evenly, "itl_zeros": zeros_then_gap, "chunk_gap": chunk_gaps}
_OF_TIMES = ("ttft", "ttft_intended", "e2e", "decode", "tpot", "tpot_incl")


def _own_statistic(samples: Samples, statistic: str, streams: int) -> Own:
    """A statistic of each stream's samples, weights counted as repeats."""
    order = np.argsort(samples.stream, kind="stable")  # values stay sorted within a stream
    value_ms, weight = samples.value_ns[order] / NS_PER_MS, samples.weight[order]
    n = np.bincount(samples.stream, samples.weight, streams).astype(np.int64)
    known = n > 0
    if statistic in ("mean", "std"):
        mean = _per_stream(samples, samples.value_ns / NS_PER_MS, streams) / np.maximum(n, 1)
        if statistic == "mean":
            return Own(mean, known)
        off = samples.value_ns / NS_PER_MS - mean[samples.stream]
        return Own(np.sqrt(_per_stream(samples, off**2, streams) / np.maximum(n, 1)), known)
    p = 1.0 if statistic == "max" else QUANTILES[statistic]
    upto = np.cumsum(weight)
    before = np.cumsum(n) - n
    value = np.zeros(streams)
    if known.any():
        rank = before[known] + (n[known] - 1) * p
        low = np.floor(rank).astype(np.int64)
        high = np.minimum(low + 1, before[known] + n[known] - 1)
        at_low, at_high = (value_ms[np.searchsorted(upto, i, side="right")] for i in (low, high))
        value[known] = at_low + (at_high - at_low) * (rank - low)
    return Own(value, known)


def _per_stream(samples: Samples, value: Floats, streams: int) -> Floats:
    summed = np.bincount(samples.stream, value * samples.weight, streams)
    return summed.astype(np.float64)


def _own_time(recording: Recording, times: gaps.StreamTimes, metric: str) -> Own:
    decode_ns = times.e2e_ns - times.ttft_ns
    slip_ns = (recording.ints("sent_ns") - recording.ints("scheduled_ns"))[times.stream]
    after_first = times.tokens - times.first_tokens
    several = times.tokens > 1
    always = np.ones(len(times.stream), dtype=bool)
    value, known = {
        "ttft": (times.ttft_ns / NS_PER_MS, always),
        "ttft_intended": ((times.ttft_ns + slip_ns) / NS_PER_MS, always),
        "e2e": (times.e2e_ns / NS_PER_MS, always),
        "decode": (decode_ns / NS_PER_MS, always),
        "tpot": (decode_ns / NS_PER_MS / np.maximum(times.tokens - 1, 1), several),
        "tpot_incl": (times.e2e_ns / NS_PER_MS / times.tokens, always),
        "tps.stream": (after_first * NS_PER_S / np.maximum(decode_ns, 1), decode_ns > 0),
    }[metric]
    return _scatter(value, known, times.stream, len(recording))


def _own_share(chunks: TokenChunks, found: Gaps, metric: str, streams: int) -> Own:
    part, whole, stream, _ = share_parts(chunks, found, metric)
    parts, wholes = np.bincount(stream, part, streams), np.bincount(stream, whole, streams)
    return Own(parts / np.where(wholes > 0, wholes, 1), wholes > 0)


def share_parts(chunks: TokenChunks, found: Gaps, metric: str) -> tuple[Floats, Floats, Ints, Ints]:
    """(part, whole, stream, epoch ns) of each chunk or gap; the summary's share is Σ ÷ Σ."""
    if metric == "fluidity":
        met, due = _deadlines(chunks)
        return met.astype(np.float64), due.astype(np.float64), chunks.stream, chunks.at_ns
    if metric == "stall_ratio":
        part, whole = np.where(smoothness.stalled(found), found.gap_ns, 0), found.gap_ns
    else:
        part, whole = _sent_together(chunks, found), found.tokens
    return part.astype(np.float64), whole.astype(np.float64), found.stream, found.at_ns


def _deadlines(chunks: TokenChunks) -> tuple[Ints, Ints]:
    """(deadlines met, deadlines set) by each chunk: `smoothness.fluidity_index` before summing."""
    first_ns = np.full(len(chunks), smoothness.FIRST_TOKEN_DEADLINE_NS)
    late_ns = smoothness.lateness_ns(chunks, first_ns)
    late = late_ns > 0
    met = chunks.tokens - late
    missed = np.where(late, late_ns // smoothness.TOKEN_DEADLINE_NS + 1, 0)
    return met, met + missed


def _sent_together(chunks: TokenChunks, found: Gaps) -> Ints:
    """Token gaps of each chunk that took no time: `smoothness.burst_share` before summing."""
    here, before = found.chunk, found.chunk - 1
    one_segment = (chunks.read_index[here] == chunks.read_index[before]) & (
        chunks.segments[here] == 1
    )
    return np.asarray(found.tokens - 1 + one_segment, dtype=np.int64)


def _scatter(value: Floats, known: Mask, stream: Ints, streams: int) -> Own:
    values, knowns = np.zeros(streams), np.zeros(streams, dtype=bool)
    values[stream], knowns[stream] = value, known
    return Own(values, knowns)
