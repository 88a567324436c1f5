"""What is known of the instrument's own error in this run, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from legato.metrics.gaps import Gaps, Mask, TokenChunks
from legato.metrics.occupancy import Occupancy, asked_concurrency, concurrency_reached
from legato.metrics.samples import NS_PER_MS
from legato.metrics.verdict import Evidence, judge
from legato.recording import USER_CLOCK, Ints, Recording

NS_PER_US = 1_000


def instrument(
    recording: Recording,
    streams: Mask,
    chunks: TokenChunks,
    gaps: Gaps,
    occupied: Occupancy,
    *,
    itl_p50_ns: float | None,
    itl_mean_ns: float | None,
    ttft_p50_ns: float | None,
) -> dict[str, Any]:
    """The summary's `instrument`; the verdict rests on figures that are not withheld for being
    few, since a small run can be a bad one too."""
    load = recording.meta.get("load") or {}
    error_us = gap_error_us(recording, chunks, gaps)
    slip_ms = _schedule_slip_ms(recording, streams)
    reached = concurrency_reached(recording, occupied)
    merged = client_merged_share(chunks)
    verdict, reasons = judge(
        Evidence(
            merged_share=merged,
            error_p99_ns=None if error_us["p99"] is None else error_us["p99"] * NS_PER_US,
            itl_p50_ns=itl_p50_ns,
            itl_mean_ns=itl_mean_ns,
            concurrency_asked=asked_concurrency(recording),
            concurrency_reached=reached,
            slip_p99_ns=None if slip_ms is None else slip_ms["p99"] * NS_PER_MS,
            ttft_p50_ns=ttft_p50_ns,
            clock_steps=int((recording.meta.get("clock") or {}).get("steps") or 0),
            cpu_share=load.get("cpu_share"),
            streams_lost=int(load.get("lost_streams") or 0),
            workers_lost=int(load.get("workers_lost") or 0),
        )
    )
    return {
        "clock": _clock(chunks),
        "error_us": error_us,
        "client_merged_share": merged,
        "coalesced_share": coalesced_share(chunks),
        "lag_us": _lag_us(chunks),
        "schedule_slip_ms": slip_ms,
        "concurrency_reached": reached,
        "cpu_share": load.get("cpu_share"),
        "verdict": verdict,
        "reasons": reasons,
    }


def gap_error_us(recording: Recording, chunks: TokenChunks, gaps: Gaps) -> dict[str, float | None]:
    """How far a gap may be from the truth: its own interval, the clock anchor, the floor.

    A gap whose ends may have come earlier by e₀ and e₁ lies in [gap − e₁, gap + e₀].
    """
    if not len(gaps):
        return {"p50": None, "p99": None, "max": None}
    here, before = gaps.chunk, gaps.chunk - 1
    bound_ns = np.maximum(chunks.early_ns[here], chunks.early_ns[before])
    # A last token that was read together with the end marks alone has an interval as wide as the
    # gap, though servers write those within microseconds: it counts in the maximum only, or every
    # short answer would be suspect.
    with_marks = (chunks.early_ns > 0) & ~_read_holds_next(chunks) & _ends_stream(chunks)
    usual = ~with_marks[here]
    width_ns = int((recording.meta.get("clock") or {}).get("anchor_width_ns") or 0)
    # Each kernel stamp was brought to our clock by an anchor good to ± its width. Two ends that
    # used one anchor share its error; since a recording does not say, both are counted.
    kernel = (chunks.flags & USER_CLOCK) == 0
    bound_ns = bound_ns + width_ns * (kernel[here].astype(np.int64) + kernel[before])
    floor_us = (recording.meta.get("calibration") or {}).get("floor_us") or {}
    p50, p99 = np.quantile(bound_ns[usual] if usual.any() else bound_ns, [0.5, 0.99]) / NS_PER_US
    floor_p50, floor_p99 = (float(floor_us.get(name) or 0.0) for name in ("p50", "p99"))
    return {
        "p50": float(p50) + floor_p50,
        "p99": float(p99) + floor_p99,
        "max": float(bound_ns.max()) / NS_PER_US + floor_p99,
    }


def client_merged_share(chunks: TokenChunks) -> float | None:
    """Share of token chunks that waited unread until a later token chunk had come as well.

    A last token that shared its read with the end marks alone says nothing: servers write them
    within microseconds. Without a stamp the count of segments tells a late read from a burst.
    """
    if not len(chunks):
        return None
    stamped = (chunks.flags & USER_CLOCK) == 0
    late = np.where(stamped, chunks.early_ns > 0, chunks.segments > 1)
    return float(np.count_nonzero(late & _read_holds_next(chunks)) / len(chunks))


def coalesced_share(chunks: TokenChunks) -> float | None:
    """Share of token chunks that came in one read with another, for any reason."""
    if not len(chunks):
        return None
    with_next = _read_holds_next(chunks)
    with_previous = np.concatenate([[False], with_next[:-1]])
    return float(np.count_nonzero(with_next | with_previous) / len(chunks))


def _read_holds_next(chunks: TokenChunks) -> Mask:
    """Whether the next token chunk of the stream came in the same read."""
    held = np.zeros(len(chunks), dtype=bool)
    held[:-1] = (chunks.read_index[1:] == chunks.read_index[:-1]) & ~chunks.opens[1:]
    return held


def _ends_stream(chunks: TokenChunks) -> Mask:
    """Whether a token chunk is the last of its stream."""
    return np.append(chunks.opens[1:], True)


def _clock(chunks: TokenChunks) -> str | None:
    if not len(chunks):
        return None
    user = int(np.count_nonzero(chunks.flags & USER_CLOCK))
    if user == 0:
        return "kernel"
    return "user" if user == len(chunks) else "mixed"


def _lag_us(chunks: TokenChunks) -> Mapping[str, float] | None:
    """How late the client read what the kernel had stamped."""
    return _p50_p99(chunks.lag_ns[(chunks.flags & USER_CLOCK) == 0], NS_PER_US)


def _schedule_slip_ms(recording: Recording, streams: Mask) -> Mapping[str, float] | None:
    """Open loop: how much later than intended requests were sent."""
    if (recording.meta.get("settings") or {}).get("mode") != "open":
        return None
    sent = recording.ints("sent_ns")
    # A fresh connection's cost is the network's and the server's, not the client's lateness.
    connecting = recording.ints("connect_ns", 0) + recording.ints("tls_ns", 0)
    slip_ns = (sent - recording.ints("scheduled_ns") - connecting)[streams & (sent >= 0)]
    return _p50_p99(slip_ns, NS_PER_MS)


def _p50_p99(values: Ints | npt.NDArray[np.float64], unit: int) -> Mapping[str, float] | None:
    if not len(values):
        return None
    p50, p99 = np.quantile(values, [0.5, 0.99]) / unit
    return {"p50": float(p50), "p99": float(p99)}


def of_parts(found: dict[str, Any], each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`instrument` of several recordings together: errors and shares of all their chunks, the
    worst verdict of any of them, and every reason with the number of its recording."""
    order = ("valid", "degraded", "invalid")
    return found | {
        "concurrency_reached": None,
        "schedule_slip_ms": None,
        "verdict": max((part["verdict"] for part in each), key=order.index),
        "reasons": [
            f"recording {number}: {reason}"
            for number, part in enumerate(each, 1)
            for reason in part["reasons"]
        ],
    }
