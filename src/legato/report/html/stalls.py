"""The longest stalls of a recording, each with its place and how many streams stalled with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.metrics.samples import NS_PER_MS
from legato.metrics.smoothness import stalled
from legato.metrics.summary import Measured
from legato.report.html.roll import Roll

MOST = 12
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Stall:
    row: int  # of the piano roll
    stream_id: int
    gap_ms: float
    at_s: float  # when it ended, from the first send
    position: int  # the token that was awaited; the first of an answer is 1
    together: int  # streams in a stall at its middle, itself included


def longest(measured: Measured, made: Roll, first_sent_ns: int) -> list[Stall]:
    """At most `MOST`, the longest first."""
    gaps = measured.gaps
    stalls = np.flatnonzero(stalled(gaps))
    gap_ns, ended_ns = gaps.gap_ns[stalls], gaps.at_ns[stalls]
    started = np.sort(ended_ns - gap_ns)
    ended = np.sort(ended_ns)
    row_of = {stream: row for row, stream in enumerate(made.rows.tolist())}
    found = []
    for index in np.argsort(-gap_ns, kind="stable")[:MOST].tolist():
        stream = int(gaps.stream[stalls[index]])
        middle_ns = int(ended_ns[index]) - int(gap_ns[index]) // 2
        together = np.searchsorted(started, middle_ns, side="right") - np.searchsorted(
            ended, middle_ns, side="left"
        )
        row = row_of[stream]
        found.append(
            Stall(
                row=row,
                stream_id=int(made.stream_id[row]),
                gap_ms=int(gap_ns[index]) / NS_PER_MS,
                at_s=(int(ended_ns[index]) - first_sent_ns) / NS_PER_S,
                position=int(measured.chunks.before_tokens[gaps.chunk[stalls[index]]]) + 1,
                together=int(together),
            )
        )
    return found
