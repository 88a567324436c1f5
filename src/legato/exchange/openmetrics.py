"""A recording as an OpenMetrics exposition: histograms of times, counts of streams and tokens.

Names follow the standard: base units, `_total` on counters, `# EOF` at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO

import numpy as np

from legato.metrics import samples
from legato.metrics.samples import Samples
from legato.metrics.summary import Measured, measure
from legato.recording import STATUSES, Ints, Recording

NS_PER_S = 1e9

# From 0.1 ms, since fast decoding is below where servers' own histograms begin, to 100 s.
BUCKETS_S = (
    *(float(f"{step}e{power}") for power in range(-4, 2) for step in (1, 1.5, 2, 3, 5, 7)),
    100.0,
)


def write(recording: Recording, sink: BinaryIO) -> None:
    sink.writelines(line.encode() + b"\n" for line in lines(recording))


def lines(recording: Recording) -> Iterator[str]:
    measured = measure(recording)
    labels = _labels(recording)
    for name, about, values in _times(recording, measured):
        yield from _histogram(f"legato_{name}_seconds", about, values, labels)
    status = recording.strings("status")[measured.streams]
    yield from _head("legato_streams", "counter", "Streams measured, by how they ended.")
    for kind in STATUSES:
        ended = {**labels, "status": kind}
        yield _sample("legato_streams_total", ended, int(np.count_nonzero(status == kind)))
    yield from _head("legato_output_tokens", "counter", "Tokens received.")
    yield _sample("legato_output_tokens_total", labels, int(measured.chunks.tokens.sum()))
    yield "# EOF"


def _times(recording: Recording, measured: Measured) -> list[tuple[str, str, Samples]]:
    times = measured.times
    sent_ns = recording.ints("sent_ns", 0)

    def per_stream(value_ns: Ints, stream: Ints) -> Samples:
        return samples.per_stream(value_ns.astype(np.float64), stream, sent_ns[stream])

    whole = measured.ok[times.stream]
    return [
        (
            "inter_token_latency",
            "Time from one token to the next; the tokens of a chunk share its gap.",
            samples.spread_evenly(measured.gaps),
        ),
        (
            "chunk_gap",
            "Time from one token-bearing chunk to the next.",
            samples.chunk_gaps(measured.gaps),
        ),
        (
            "time_to_first_token",
            "Time from the send to the first token.",
            per_stream(times.ttft_ns, times.stream),
        ),
        (
            "end_to_end",
            "Time from the send to the last token, of whole streams.",
            per_stream(times.e2e_ns[whole], times.stream[whole]),
        ),
    ]


def _labels(recording: Recording) -> dict[str, str]:
    settings = recording.meta.get("settings") or {}
    wanted = {"model": settings.get("model"), "url": settings.get("url")}
    return {name: str(text) for name, text in wanted.items() if text}


def _histogram(name: str, about: str, values: Samples, labels: Mapping[str, str]) -> Iterator[str]:
    yield from _head(name, "histogram", about, unit="seconds")
    upto = np.concatenate([[0], values.upto])
    for edge_s in BUCKETS_S:
        below = np.searchsorted(values.value_ns, edge_s * NS_PER_S, side="right")
        yield _sample(f"{name}_bucket", {**labels, "le": repr(edge_s)}, int(upto[below]))
    yield _sample(f"{name}_bucket", {**labels, "le": "+Inf"}, values.n)
    yield _sample(f"{name}_count", labels, values.n)
    total_s = float((values.value_ns * values.weight).sum()) / NS_PER_S
    yield _sample(f"{name}_sum", labels, total_s)


def _head(name: str, kind: str, about: str, unit: str | None = None) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    if unit is not None:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {about}"


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value!r}" if inside else f"{name} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
