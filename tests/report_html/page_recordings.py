"""Recordings of known shape for the tests of the HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from legato.metrics.summary import summarise
from legato.recording import CONTENT, HAS_CHOICES, Recording, Stream
from legato.report.html.document import render

MS = 1_000_000
EPOCH_NS = 1_700_000_000_000_000_000
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"alert(1)\">"


def stream(stream_id: int, arrivals_ms: Sequence[float], **fields: Any) -> Stream:
    """A stream of one token a chunk; `start_ms` is when it was sent."""
    n = len(arrivals_ms)
    sent_ns = EPOCH_NS + round(fields.pop("start_ms", 0.0) * MS)
    end_ms = fields.pop("end_ms", max(arrivals_ms, default=0.0))
    values: dict[str, Any] = {
        "status": "ok",
        "scheduled_ns": sent_ns,
        "sent_ns": sent_ns,
        "ended_ns": sent_ns + round(end_ms * MS),
        "arrival_ns": [round(arrival * MS) for arrival in arrivals_ms],
        "lag_ns": [5_000] * n,
        "early_ns": [0] * n,
        "read_index": list(range(n)),
        "segments": [1] * n,
        "tokens": [1] * n,
        "kind": [CONTENT] * n,
        "flags": [HAS_CHOICES] * n,
        "prompt_tokens": 100 * (stream_id % 4 + 1),
    }
    return Stream(stream_id=stream_id, **(values | fields))


def uneven(streams: int = 40, tokens: int = 60) -> Recording:
    """Gaps around 10 ms; all streams open at one moment stall there; two streams fail."""
    random = np.random.default_rng(3)
    made = []
    for index in range(streams):
        start_ms = index * 20.0
        arrivals_ms = 50 + np.cumsum(random.lognormal(np.log(10), 0.1, tokens))
        arrivals_ms[start_ms + arrivals_ms > 600] += 300 + index
        failed = index in (5, 11)
        made.append(
            stream(
                index,
                arrivals_ms[: 20 if failed else tokens].tolist(),
                start_ms=start_ms,
                status="aborted" if failed else "ok",
                error=HOSTILE if failed else None,
            )
        )
    settings = {"url": "http://h/v1", "model": "tiny", "mode": "closed", "concurrency": 30}
    return Recording.from_streams(made, {"settings": settings, "host": {"cpus": 2}})


def failed() -> Recording:
    """Every stream failed, and everything a server can name is hostile."""
    streams = [
        stream(index, [], status="http_error", http_status=503, error=HOSTILE, end_ms=30.0)
        for index in range(6)
    ]
    settings = {"url": HOSTILE, "model": HOSTILE, "mode": "closed", "concurrency": 2}
    return Recording.from_streams(streams, {"settings": settings, "versions": {HOSTILE: HOSTILE}})


def page(recording: Recording) -> str:
    return render(recording, summarise(recording))


@cache
def uneven_page() -> str:
    return page(uneven())
