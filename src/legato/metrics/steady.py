"""The part of a run in which the asked load was on, and whether the target had settled in it.

Trimming only relabels: nothing is removed from the recording, and a stream that failed is never
trimmed, wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from legato.metrics import samples
from legato.metrics.gaps import Floats, Mask, token_chunks
from legato.metrics.occupancy import NS_PER_S, Window, full_load, occupancy
from legato.metrics.samples import Samples
from legato.metrics.summary import Measured, measure
from legato.recording import Recording

RULE = (
    "left out: streams sent before the first one ended (they start together, on an idle target)"
    " and streams still open when the load could no longer be held"
)
BLOCKS_A_HALF = 8
# Of Student's t with 2 × 8 − 2 degrees of freedom, two-sided at 1 %.
_T_995 = 2.977
# A smaller drift than this is of no consequence, however certain it is.
SMALLEST_DRIFT = 0.05


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A recording whose ramp and drain are marked `warmup`, which every metric leaves out."""

    recording: Recording
    window: Window | None  # none where too little would be left: then nothing is trimmed
    left_out: int

    def describe(self) -> dict[str, Any]:
        length_s = None if self.window is None else self.window.length_ns / NS_PER_S
        return {"streams": self.left_out, "window_s": length_s, "rule": RULE}


def trim(recording: Recording) -> Trimmed:
    """Mark the first generation and the drain."""
    window = _window(recording)
    if window is None:
        return Trimmed(recording, None, 0)
    ok = recording.strings("status") == "ok"
    sent_ns, ended_ns = recording.ints("sent_ns"), recording.ints("ended_ns")
    inside = (sent_ns >= window.start_ns) & (ended_ns <= window.end_ns)
    left_out = ok & ~inside
    if not (ok & inside).any():
        return Trimmed(recording, None, 0)
    phase = np.where(left_out, "warmup", recording.strings("phase"))
    return Trimmed(_with_phase(recording, phase), window, int(np.count_nonzero(left_out)))


def _window(recording: Recording) -> Window | None:
    """From the end of the first stream that ended well until the load could not be held."""
    whole = full_load(recording, occupancy(recording))
    ended_ns = recording.ints("ended_ns")[recording.strings("status") == "ok"]
    if whole is None or not len(ended_ns):
        return None
    window = Window(max(whole.start_ns, int(ended_ns.min())), whole.end_ns)
    return window if window.length_ns else None


def _with_phase(recording: Recording, phase: Any) -> Recording:
    table = recording.table
    index = table.column_names.index("phase")
    column = pa.array(phase.tolist(), type=table.schema.field("phase").type)
    return Recording(table.set_column(index, "phase", column), recording.meta)


# --- rates ------------------------------------------------------------------------------------


def rates(recording: Recording, window: Window | None, met: Mask) -> dict[str, float | None]:
    """Tokens, requests, and requests that `met` the SLO, a second in the window.

    Every stream counts here, whatever its phase: it is the window that bounds.
    """
    if window is None:
        return {"tokens_per_s": None, "requests_per_s": None, "goodput_per_s": None}
    length_s = window.length_ns / NS_PER_S
    chunks = token_chunks(recording, np.ones(len(recording), dtype=bool))
    inside = (chunks.at_ns >= window.start_ns) & (chunks.at_ns < window.end_ns)
    ended_ns = recording.ints("ended_ns")
    ended = (ended_ns > window.start_ns) & (ended_ns <= window.end_ns)
    ended &= recording.strings("status") == "ok"
    return {
        "tokens_per_s": float(chunks.tokens[inside].sum()) / length_s,
        "requests_per_s": float(np.count_nonzero(ended)) / length_s,
        "goodput_per_s": float(np.count_nonzero(ended & met)) / length_s,
    }


# --- steady state -----------------------------------------------------------------------------


def steadiness(recording: Recording) -> dict[str, Any]:
    """Whether ITL and TTFT stayed put: `steady` (null where there is too little to tell) and by
    what share each changed from the first half of the run to the second."""
    measured = measure(recording)
    itl = samples.spread_evenly(measured.gaps)
    ttft = _ttft(recording, measured)
    drifts = {"itl": _drift(itl), "ttft": _drift(ttft)}
    known = [drift for drift in drifts.values() if drift is not None]
    return {
        "steady": all(not drift.is_real for drift in known) if known else None,
        **{name: None if drift is None else drift.share for name, drift in drifts.items()},
    }


def _ttft(recording: Recording, measured: Measured) -> Samples:
    times = measured.times
    sent_ns = recording.ints("sent_ns")[times.stream]
    return samples.per_stream(times.ttft_ns.astype(np.float64), times.stream, sent_ns)


@dataclass(frozen=True, slots=True)
class _Drift:
    share: float  # of the first half's mean
    t: float

    @property
    def is_real(self) -> bool:
        return abs(self.share) > SMALLEST_DRIFT and abs(self.t) > _T_995


def _drift(of: Samples) -> _Drift | None:
    """The means of time blocks, the first half of them against the second (Student's t): blocks,
    not samples, since neighbours in time resemble each other."""
    if len(of) < 4 * BLOCKS_A_HALF:
        return None
    means = _block_means(of)
    first, second = means[:BLOCKS_A_HALF], means[BLOCKS_A_HALF:]
    change = float(second.mean() - first.mean())
    if first.mean() <= 0:
        return None
    error = float(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / BLOCKS_A_HALF))
    t = change / error if error > 0 else float(np.sign(change)) * np.inf if change else 0.0
    return _Drift(change / float(first.mean()), float(t))


def _block_means(of: Samples) -> Floats:
    """Stretches of time with equally many samples."""
    order = np.argsort(of.at_ns, kind="stable")
    value, weight = of.value_ns[order], of.weight[order].astype(np.float64)
    block = np.arange(len(of)) * (2 * BLOCKS_A_HALF) // len(of)
    return np.bincount(block, value * weight) / np.bincount(block, weight)
