"""The summary: every figure of a recording as one JSON-ready dictionary.

It only chooses which streams count where and puts the parts together; formulas live beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from legato.metrics import breakdown, cold, gaps, occupancy, samples, tally
from legato.metrics.dialects import all_dialects
from legato.metrics.distribution import describe
from legato.metrics.gaps import Floats, Gaps, Mask, StreamTimes, TokenChunks
from legato.metrics.instrument import instrument, of_parts
from legato.metrics.occupancy import Occupancy
from legato.metrics.samples import Samples
from legato.metrics.smoothness import smoothness
from legato.metrics.windows import windows_ns
from legato.recording import Ints, Recording

if TYPE_CHECKING:
    from legato.expressions import Condition

SUMMARY_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """Which streams of a recording count, and what they delivered."""

    streams: Mask  # all but warm-up
    ok: Mask
    chunks: TokenChunks  # of all measured streams that stream, whole or cut
    gaps: Gaps
    times: StreamTimes


def summarise(recording: Recording, *, slo: Sequence[Condition] = ()) -> dict[str, Any]:
    """Every key of the summary; null where the recording does not tell. `goodput` is counted
    against `slo`."""
    run = Run.of(recording)
    measured, itl = run.measured, run.itl
    summary = {
        "schema": SUMMARY_SCHEMA,
        "run": tally.run(recording),
        "streams": tally.streams(recording, measured.streams),
        "failures": tally.failures(recording, measured.streams),
        "tokens": tally.tokens(recording, measured.chunks),
        "tokens_per_chunk": tally.tokens_per_chunk(measured.chunks),
        **_gap_distributions(measured.gaps, itl),
        **_stream_distributions(recording, measured, run.ttft),
        **_breakdowns(recording, measured, itl, run.occupied),
        "cold": cold.cold(recording, measured.times),
        "goodput": None,
        "smoothness": smoothness(measured.chunks, measured.gaps),
        "dialects": all_dialects(recording),
        **_of_run(run),
        "histogram_ms": breakdown.histogram_ms(itl),
    }
    if slo:
        from legato.metrics.goodput import goodput

        summary["goodput"] = goodput(recording, slo, summary)
    return summary


@dataclass(frozen=True, slots=True)
class Run:
    """A recording with what most figures start from, each sorted once."""

    recording: Recording
    measured: Measured
    occupied: Occupancy
    itl: Samples
    ttft: Samples

    @classmethod
    def of(cls, recording: Recording) -> Run:
        measured = measure(recording)
        times = measured.times
        return cls(
            recording,
            measured,
            occupancy.occupancy(recording),
            itl=samples.spread_evenly(measured.gaps),
            ttft=_of_streams(recording, times.stream, times.ttft_ns, times.ttft_ns),
        )

    def instrument(self) -> dict[str, Any]:
        return instrument(
            self.recording,
            self.measured.streams,
            self.measured.chunks,
            self.measured.gaps,
            self.occupied,
            itl_p50_ns=samples.quantile(self.itl, 0.5),
            itl_mean_ns=samples.mean(self.itl),
            ttft_p50_ns=samples.quantile(self.ttft, 0.5),
        )

    def throughput(self) -> dict[str, Any]:
        return occupancy.throughput(
            self.recording, self.occupied, self.measured.chunks, self.measured.times
        )


def _of_run(run: Run) -> dict[str, Any]:
    """What depends on the load; of several recordings each is judged by its own."""
    found = {"tps": run.throughput(), "instrument": run.instrument()}
    parts = run.recording.parts()
    if len(parts) == 1:
        return found
    runs = [Run.of(part) for part in parts]
    return {
        "tps": found["tps"]
        | occupancy.throughput_of_parts(parts, [part.throughput() for part in runs]),
        "instrument": of_parts(found["instrument"], [part.instrument() for part in runs]),
    }


def measure(recording: Recording) -> Measured:
    """A stream that was cut keeps its gaps: dropping it would drop the slowest. One that did
    not stream has none."""
    status = recording.strings("status")
    streams = recording.strings("phase") != "warmup"
    chunks = gaps.token_chunks(recording, streams & (status != "not_streaming"))
    return Measured(
        streams=streams,
        ok=streams & (status == "ok"),
        chunks=chunks,
        gaps=gaps.gaps(chunks),
        times=gaps.stream_times(chunks),
    )


def _gap_distributions(found: Gaps, itl: Samples) -> dict[str, Any]:
    if not (found.tokens > 1).any():
        # One token a chunk: the three readings are one.
        figures = describe(itl)
        return {name: deepcopy(figures) for name in ("itl_ms", "itl_zeros_ms", "chunk_gap_ms")}
    return {
        "itl_ms": describe(itl),
        "itl_zeros_ms": describe(samples.zeros_then_gap(found)),
        "chunk_gap_ms": describe(samples.chunk_gaps(found)),
    }


def _stream_distributions(
    recording: Recording, measured: Measured, ttft: Samples
) -> dict[str, Any]:
    """TTFT of every stream that gave a token; the others of streams that ended well."""
    times = measured.times
    whole = measured.ok[times.stream]
    several = whole & (times.tokens > 1)
    decode_ns = times.e2e_ns - times.ttft_ns
    slip_ns = (recording.ints("sent_ns") - recording.ints("scheduled_ns"))[times.stream]
    first_ns = gaps.first_chunk_ns(recording)
    answered = measured.streams & (first_ns >= 0)
    answered &= recording.strings("status") != "not_streaming"
    # E2E ÷ N of whole streams: N ≥ 1 for every stream in `times`.
    of = {
        "tpot_ms": (several, decode_ns / np.maximum(times.tokens - 1, 1)),
        "tpot_incl_ms": (whole, times.e2e_ns / times.tokens),
        "ttft_intended_ms": (np.ones_like(whole), times.ttft_ns + slip_ns),
        "decode_ms": (whole, decode_ns),
        "e2e_ms": (whole, times.e2e_ns),
    }
    open_ns = {"ttft_intended_ms": times.ttft_ns}
    found = {
        name: describe(
            _of_streams(
                recording,
                times.stream[mask],
                value_ns[mask],
                open_ns.get(name, times.e2e_ns)[mask],
            )
        )
        for name, (mask, value_ns) in of.items()
    }
    found["ttft_ms"] = describe(ttft)
    any_ns = first_ns[answered]
    found["ttft_any_ms"] = describe(
        _of_streams(recording, np.flatnonzero(answered), any_ns, any_ns)
    )
    return found


def _of_streams(
    recording: Recording, stream: Ints, value_ns: Ints | Floats, open_ns: Ints
) -> Samples:
    """A figure a stream, placed in the stretch of time its stream was sent in."""
    window_ns = windows_ns(recording.ints("sent_ns")[stream], open_ns)
    return samples.per_stream(value_ns.astype(np.float64), stream, window_ns)


def _breakdowns(
    recording: Recording, measured: Measured, itl: Samples, occupied: occupancy.Occupancy
) -> dict[str, Any]:
    """ITL by position of the token (the first is 1), context before it, and streams open."""
    position = measured.chunks.before_tokens[measured.gaps.chunk][itl.origin] + 1
    prompt = recording.ints("prompt_tokens")[itl.stream]
    context = np.where(prompt >= 0, prompt + position, 0)
    return {
        "by_position": breakdown.by_doubling(itl, position),
        "by_context": breakdown.by_doubling(itl, context),
        "by_in_flight": breakdown.by_half_doubling(itl, occupied.at(itl.at_ns)),
    }
