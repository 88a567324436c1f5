"""A recording as a Chrome trace, which Perfetto opens: a process a worker, a track a stream.

A stream is a slice that holds its wait for the first token and its gaps; stalls have a name of
their own. Times are microseconds from the first send.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from legato.metrics.gaps import Gaps, TokenChunks, gaps, stream_times, token_chunks
from legato.metrics.smoothness import stalled
from legato.recording import Recording

NS_PER_US = 1_000

Event = dict[str, Any]


def write(recording: Recording, sink: BinaryIO) -> None:
    sink.write(b'{"displayTimeUnit":"ms","traceEvents":[\n')
    separator = b""
    for event in events(recording):
        text = json.dumps(event, separators=(",", ":"), allow_nan=False)
        sink.write(separator + text.encode())
        separator = b",\n"
    sink.write(b"\n]}\n")


def events(recording: Recording) -> Iterator[Event]:
    sent_ns = recording.ints("sent_ns")
    if not (sent_ns >= 0).any():
        return
    origin_ns = int(sent_ns[sent_ns >= 0].min())
    yield from _names(recording)
    yield from _streams(recording, origin_ns)
    yield from _gaps(recording, origin_ns)
    yield from _in_flight(recording, origin_ns)


def _names(recording: Recording) -> Iterator[Event]:
    workers, ids = recording.ints("worker"), recording.ints("stream_id")
    for worker in np.unique(workers):
        yield _named("process_name", int(worker), 0, f"worker {worker}")
    for worker, stream in zip(workers, ids, strict=True):
        yield _named("thread_name", int(worker), _track(stream), f"stream {stream}")


def _streams(recording: Recording, origin_ns: int) -> Iterator[Event]:
    """The whole stream, then the wait for its first token inside it."""
    sent_ns, ended_ns = recording.ints("sent_ns"), recording.ints("ended_ns")
    workers, ids = recording.ints("worker"), recording.ints("stream_id")
    status, phase = recording.strings("status"), recording.strings("phase")
    prompt, output = recording.ints("prompt_tokens"), recording.ints("output_tokens")
    times = stream_times(token_chunks(recording, np.ones(len(recording), dtype=bool)))
    ttft_ns = dict(zip(times.stream.tolist(), times.ttft_ns.tolist(), strict=True))
    last_ns = dict(zip(times.stream.tolist(), times.e2e_ns.tolist(), strict=True))
    for row in np.flatnonzero(sent_ns >= 0).tolist():
        where = {"pid": int(workers[row]), "tid": _track(ids[row])}
        start_us = _us(sent_ns[row] - origin_ns)
        length_ns = max(int(ended_ns[row] - sent_ns[row]), last_ns.get(row, 0))
        name = "stream" if status[row] == "ok" else f"stream ({status[row]})"
        known = {"prompt_tokens": prompt[row], "output_tokens": output[row]}
        facts: dict[str, Any] = {key: int(n) for key, n in known.items() if n >= 0}
        yield _slice(name, str(phase[row]), start_us, _us(length_ns), where, facts)
        if row in ttft_ns:
            yield _slice("TTFT", "ttft", start_us, _us(ttft_ns[row]), where, {})


def _gaps(recording: Recording, origin_ns: int) -> Iterator[Event]:
    chunks: TokenChunks = token_chunks(recording, np.ones(len(recording), dtype=bool))
    found: Gaps = gaps(chunks)
    stalls = stalled(found)
    workers, ids = recording.ints("worker"), recording.ints("stream_id")
    for i in np.flatnonzero(found.gap_ns > 0).tolist():
        row = int(found.stream[i])
        begin_ns = int(found.at_ns[i] - found.gap_ns[i]) - origin_ns
        kind = "stall" if stalls[i] else "gap"
        yield _slice(
            kind,
            kind,
            _us(begin_ns),
            _us(found.gap_ns[i]),
            {"pid": int(workers[row]), "tid": _track(ids[row])},
            {
                "tokens": int(found.tokens[i]),
                "position": int(chunks.before_tokens[found.chunk[i]]),
                "may_be_early_us": _us(chunks.early_ns[found.chunk[i]]),
            },
        )


def _in_flight(recording: Recording, origin_ns: int) -> Iterator[Event]:
    """A counter track: streams open."""
    sent_ns, ended_ns = recording.ints("sent_ns"), recording.ints("ended_ns")
    was_sent = sent_ns >= 0
    moments = np.concatenate([sent_ns[was_sent], ended_ns[was_sent]])
    steps = np.repeat([1, -1], np.count_nonzero(was_sent))
    order = np.lexsort((steps, moments))
    for at_ns, count in zip(moments[order], np.cumsum(steps[order]), strict=True):
        yield {
            "ph": "C",
            "name": "streams in flight",
            "pid": 0,
            "ts": _us(at_ns - origin_ns),
            "args": {"streams": int(count)},
        }


def _slice(
    name: str, category: str, start_us: float, length_us: float, where: Event, facts: Event
) -> Event:
    made = {"ph": "X", "name": name, "cat": category, "ts": start_us, "dur": length_us}
    return {**made, **where, "args": facts}


def _named(what: str, process: int, track: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": name}}


def _track(stream: int) -> int:
    # Track 0 is the process's own.
    return int(stream) + 1


def _us(time_ns: int) -> float:
    return int(time_ns) / NS_PER_US
