"""What each read was exposed to: one column a cause, with the instrument it is fitted by.

A long wait is more likely than a short one to hold anything that happens at random, so whatever
is counted inside a wait would seem to lengthen it. Such columns get an instrument counted in a
window of fixed length, which cannot know how long the wait became.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.explain.part import CHUNK_TOKENS, CONTEXT, IN_FLIGHT, POSITION, STARTS, STEP
from legato.explain.reads import Reads
from legato.metrics.gaps import Floats, StreamTimes
from legato.metrics.occupancy import Occupancy
from legato.recording import Ints, Recording

# Sources that know how many tokens each chunk held; the others spread or guess.
COUNTED_SOURCES = ("chunk_usage", "token_ids", "logprobs", "tokenizer")

# The middle nine tenths of waits must span this share of the highest load among them.
LEAST_LOAD_SPREAD = 0.25


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the model: what it belongs to, its values and its instrument."""

    cause: str
    value: Floats
    instrument: Floats
    counts_units: bool = True  # its values count what a cost is given for one of


@dataclass(frozen=True, slots=True)
class Starts:
    """Requests sent and first tokens, of all streams whatever their phase."""

    sent_ns: Ints
    first_ns: Ints
    own_sent_ns: Ints  # per stream of the recording
    own_first_ns: Ints


def starts(recording: Recording, times: StreamTimes) -> Starts:
    sent_ns = recording.ints("sent_ns")
    first_ns = np.full(len(recording), -1, dtype=np.int64)
    first_ns[times.stream] = sent_ns[times.stream] + times.ttft_ns
    was_sent, has_token = sent_ns >= 0, first_ns >= 0
    return Starts(np.sort(sent_ns[was_sent]), np.sort(first_ns[has_token]), sent_ns, first_ns)


def columns(
    recording: Recording, found: Reads, occupied: Occupancy, started: Starts
) -> list[Column]:
    """All columns a recording can fill, the plain ones first: a later one that is a combination
    of earlier ones cannot be told apart from them."""
    chunks = found.chunks.astype(np.float64)
    made = [_plain(STEP, chunks), _plain(POSITION, found.chunk_position.astype(np.float64))]
    prompt = recording.ints("prompt_tokens")[found.stream]
    if len(prompt) and (prompt >= 0).all():
        made.append(_plain(CONTEXT, found.chunk_position + prompt * chunks))
    load = occupied.at(found.begin_ns)
    if varies(load):
        made.append(_plain(IN_FLIGHT, (load - 1) * chunks))
    source = recording.strings("token_source")[found.stream]
    if np.isin(source, COUNTED_SOURCES).all():
        made.append(_plain(CHUNK_TOKENS, (found.tokens - found.chunks).astype(np.float64)))
    return made + _start_columns(found, started)


def varies(load: Ints) -> bool:
    """Whether the load moved enough to say what one stream alone would see: a fixed number of
    streams, its ramp and its drain do not tell."""
    if not len(load):
        return False
    low, high = np.quantile(load, [0.05, 0.95])
    return bool(high - low >= max(1.0, LEAST_LOAD_SPREAD * high))


def _plain(cause: str, value: Floats) -> Column:
    return Column(cause, value, value)


def _start_columns(found: Reads, started: Starts) -> list[Column]:
    """A start may hold up the wait in which its request came, the one after it (the step that
    was running had to end first), the one that ends with its first token, or every one between
    the two (a prefill in pieces). Their sum is what starts cost; which it was is not asked."""
    if not len(found):
        return []
    begin_ns, end_ns = found.begin_ns, found.end_ns
    usual_ns = int(np.median(found.wait_ns))
    own_sent_ns = started.own_sent_ns[found.stream]
    own_first_ns = started.own_first_ns[found.stream]
    inside = _within(started.sent_ns, begin_ns, end_ns, own_sent_ns)
    opening = _within(started.sent_ns, begin_ns, begin_ns + usual_ns, own_sent_ns)
    before = _within(started.sent_ns, begin_ns - usual_ns, begin_ns, own_sent_ns)
    half_ns = usual_ns // 2
    tokens = _within(started.first_ns, end_ns - half_ns, end_ns + half_ns, own_first_ns)
    awaited = _awaited(started, begin_ns)
    return [
        Column(STARTS, inside, opening),
        Column(STARTS, before, before),
        Column(STARTS, tokens, tokens),
        Column(STARTS, awaited, awaited, counts_units=False),
    ]


def _awaited(started: Starts, at_ns: Ints) -> Floats:
    """1 where some stream had been sent and had no token yet. Whether there were more does not
    count: an engine gives a step one budget for prefill, however long the queue."""
    answered = started.own_first_ns >= 0
    sent_ns = np.sort(started.own_sent_ns[answered])
    waiting = np.searchsorted(sent_ns, at_ns, side="right") - np.searchsorted(
        started.first_ns, at_ns, side="right"
    )
    return np.asarray(waiting > 0, dtype=np.float64)


def _within(events_ns: Ints, low_ns: Ints, high_ns: Ints, own_ns: Ints) -> Floats:
    """How many events of other streams lie in [low, high)."""
    found = np.searchsorted(events_ns, high_ns, side="left") - np.searchsorted(
        events_ns, low_ns, side="left"
    )
    own = (own_ns >= low_ns) & (own_ns < high_ns)
    return np.asarray(found - own, dtype=np.float64)
