"""The attribution: how many milliseconds of the mean gap, and of the slowest gaps, go with what.

A pure function of a recording. Its parts add up to the mean gap; what cannot be told apart is
named as such and never split by a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from legato.explain.model import fitted_parts, model
from legato.explain.moved import moved, moved_parts
from legato.explain.part import CAUSES, Part
from legato.explain.reads import reads
from legato.explain.rest import rest, rest_parts
from legato.explain.tail import Tail, tail
from legato.metrics.gaps import Gaps
from legato.metrics.occupancy import occupancy
from legato.metrics.summary import measure
from legato.recording import Recording

# A fit of up to nine columns says nothing on fewer waits than this.
LEAST_READS = 50


@dataclass(frozen=True, slots=True)
class Facts:
    """What the sentences need to know beside the figures."""

    prompt_tokens: tuple[int, int] | None  # least and most; none where unknown
    in_flight: tuple[int, int]
    starts: bool  # whether any request was sent while another stream received
    stalls: int
    shared_stalls: int
    retransmitting: bool | None  # whether any stream had retransmits; none where unknown
    burst_share: float  # of reads: several chunks sent together
    held_ns: float
    merged_share: float


@dataclass(frozen=True, slots=True)
class Attribution:
    streams: int
    gaps: int
    mean_ns: float  # the mean ITL
    parts: list[Part]
    tail: Tail | None
    facts: Facts


def attribute(recording: Recording) -> Attribution | None:
    """None where there are too few gaps to say anything."""
    measured = measure(recording)
    chunks, gaps = measured.chunks, measured.gaps
    found = reads(chunks, gaps)
    if len(found) < LEAST_READS or not found.wait_ns.any():
        return None
    fitted = model(recording, found, gaps)
    left = rest(recording, fitted, gaps)
    shifted = moved(found, fitted.fitted.rest_ns, chunks, gaps)
    slowest = tail(fitted, left, shifted, gaps)
    parts = fitted_parts(fitted) | rest_parts(fitted, left) | moved_parts(shifted, chunks, gaps)
    shares = slowest.shares if slowest else {}
    load = occupancy(recording).at(found.begin_ns)
    return Attribution(
        streams=len(np.unique(gaps.stream)),
        gaps=len(gaps),
        mean_ns=float(gaps.gap_ns.sum()) / int(gaps.tokens.sum()),
        parts=[replace(parts[cause], tail_share=shares.get(cause)) for cause in CAUSES],
        tail=slowest,
        facts=Facts(
            prompt_tokens=_prompt_tokens(recording, gaps),
            in_flight=(int(load.min()), int(load.max())),
            starts=_any_start(recording, found.begin_ns.min(), found.end_ns.max()),
            stalls=int(np.count_nonzero(left.stalls)),
            shared_stalls=int(np.count_nonzero(left.shared)),
            retransmitting=(
                None if left.retransmitting is None else bool(left.retransmitting.any())
            ),
            burst_share=float(np.mean(found.alone & (found.chunks > 1))),
            held_ns=shifted.held_ns,
            merged_share=shifted.merged_share,
        ),
    )


def _prompt_tokens(recording: Recording, gaps: Gaps) -> tuple[int, int] | None:
    prompt = recording.ints("prompt_tokens")[np.unique(gaps.stream)]
    return None if (prompt < 0).any() else (int(prompt.min()), int(prompt.max()))


def _any_start(recording: Recording, from_ns: int, to_ns: int) -> bool:
    sent_ns = recording.ints("sent_ns")
    return bool(((sent_ns > from_ns) & (sent_ns < to_ns)).any())
