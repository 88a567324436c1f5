"""A recording against the metronome's log of what it really sent: the error of every gap.

The truth of an arrival is the interval of the send that brought it, [clock before, clock after]:
on loopback the kernel stamps the segment inside that call. Its point estimate is the clock before:
the stamp follows within microseconds, while the clock after is often read milliseconds later,
because the send woke the client and the scheduler let it run first. A recorded arrival must lie
inside the interval; a recorded gap is compared with the difference of the point estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from legato.metronome.truth import Truth
from legato.recording import CONTENT, REASONING, TOOL, USER_CLOCK, Recording

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Per token chunk of every stream that the log knows, stream after stream."""

    streams: int
    failed_streams: int  # asked of the metronome or sent by us, and not whole here
    lost_events: int  # logged as sent whole to the end, and not recorded
    first: Mask  # the first chunk of its stream
    exact: Mask  # one kernel stamp, one segment: no interval
    merged: Mask  # shared a read because the client was late
    kernel_ns: Ints  # recorded arrival − clock before the send
    user_ns: Ints  # time of the read − clock before the send
    early_ns: Ints
    width_ns: Ints  # of the truth itself: clock after − clock before
    ttft_ns: Ints  # recorded TTFT − true TTFT, per stream

    def gap_errors_ns(self, arrival_error_ns: Ints, exact_only: bool) -> Ints:
        """|recorded gap − true gap|; a gap is exact where both its ends are."""
        errors = np.abs(np.diff(arrival_error_ns))
        keep = ~self.first[1:]
        if exact_only:
            keep &= self.exact[1:] & self.exact[:-1]
        return errors[keep]

    @property
    def exact_share(self) -> float:
        return float(self.exact.mean()) if len(self.exact) else 0.0

    @property
    def merged_share(self) -> float:
        return float(self.merged.mean()) if len(self.merged) else 0.0

    @property
    def contained_share(self) -> float | None:
        """Of the chunks with an interval: how many intervals reach the truth's."""
        inexact = ~self.exact
        if not inexact.any():
            return None
        latest = self.kernel_ns[inexact]
        earliest = latest - self.early_ns[inexact]
        return float(((latest >= 0) & (earliest <= self.width_ns[inexact])).mean())

    @property
    def inside_share(self) -> float:
        """Of the exact arrivals: how many lie inside the truth's interval."""
        late = self.kernel_ns[self.exact]
        inside = (late >= 0) & (late <= self.width_ns[self.exact])
        return float(inside.mean()) if len(late) else 0.0


def compare(recording: Recording, truth: Truth) -> Comparison:
    """Match the recording's streams to the log by response id."""
    epoch_ns = recording.meta["clock"]["epoch_offset_ns"]
    sent_ns = recording.ints("sent_ns") - epoch_ns
    bearing = np.isin(recording.kind, (CONTENT, REASONING, TOOL)) & (recording.tokens > 0)
    offsets = recording.offsets
    parts: list[tuple[Any, ...]] = []
    ttft: list[int] = []
    lost = 0
    whole = (recording.strings("status") == "ok") & (recording.strings("response_id") != "")
    failed = max(len(truth), len(recording)) - int(whole.sum())
    for row, response in enumerate(recording.strings("response_id")):
        if not response:
            continue
        before, after, _ = truth.arrivals(response)
        chunks = np.flatnonzero(bearing[offsets[row] : offsets[row + 1]]) + offsets[row]
        lost += max(0, len(before) - len(chunks))
        count = min(len(before), len(chunks))
        if not count:
            continue
        chunks, before, after = chunks[:count], before[:count], after[:count]
        arrival = recording.arrival_ns[chunks] + sent_ns[row]
        received = int(truth.request(response)["received_ns"])
        ttft.append(int(recording.arrival_ns[chunks[0]]) - int(before[0] - received))
        first = np.zeros(count, bool)
        first[0] = True
        early = recording.early_ns[chunks]
        on_kernel = recording.flags[chunks] & USER_CLOCK == 0
        parts.append(
            (
                first,
                (early == 0) & on_kernel,
                (early > 0) & on_kernel,
                arrival - before,
                arrival + recording.lag_ns[chunks] - before,
                early,
                after - before,
            )
        )
    columns: Any = [np.concatenate(column) for column in zip(*parts, strict=True)]
    first, exact, merged, kernel_ns, user_ns, early_ns, width_ns = columns
    return Comparison(
        streams=len(parts),
        failed_streams=failed,
        lost_events=lost,
        first=first,
        exact=exact,
        merged=merged,
        kernel_ns=kernel_ns,
        user_ns=user_ns,
        early_ns=early_ns,
        width_ns=width_ns,
        ttft_ns=np.asarray(ttft, np.int64),
    )


def quantiles_us(errors_ns: Ints) -> dict[str, float | None]:
    """p50, p99 and max in µs."""
    if not len(errors_ns):
        return {"p50": None, "p99": None, "max": None}
    p50, p99 = np.quantile(errors_ns, [0.5, 0.99])
    return {"p50": float(p50) / 1e3, "p99": float(p99) / 1e3, "max": float(errors_ns.max()) / 1e3}
