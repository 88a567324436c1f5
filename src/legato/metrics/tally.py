"""What was run and how it ended: settings, streams by status, tokens by source. Counts only."""

from __future__ import annotations

from typing import Any

import numpy as np

from legato.endings import LEFT_OPEN
from legato.metrics.gaps import Mask, TokenChunks
from legato.recording import DONE, STATUSES, Recording

NS_PER_S = 1_000_000_000

ENDED_BY_DONE = ("chat", "completions")  # the APIs whose streams end with `[DONE]`


def run(recording: Recording) -> dict[str, Any]:
    """What was asked for, where and with what."""
    meta = recording.meta
    settings = meta.get("settings") or {}
    load = meta.get("load") or {}
    friendly = settings.get("cache_friendly")
    return {
        "settings": settings,
        "duration_s": _duration_s(recording),
        "started_ns": load.get("started_ns"),
        "partial": bool(meta.get("partial", False)),
        "lost_streams": load.get("lost_streams"),
        "workers_lost": load.get("workers_lost"),
        "retried": load.get("retried"),
        "warmup_streams": int(np.count_nonzero(recording.strings("phase") == "warmup")),
        "salted": None if friendly is None else not friendly,
        "schedule": meta.get("schedule"),
        "host": meta.get("host"),
        "versions": meta.get("versions"),
        "calibration": meta.get("calibration"),
        "clock": meta.get("clock"),
    }


def streams(recording: Recording, measured: Mask) -> dict[str, int]:
    """How the measured streams ended; `ok` to `not_streaming` add up to `total`.

    `left_open` are those of the aborted that the client left; `without_done` those of the ok that
    lack the `[DONE]` their API ends with.
    """
    status = recording.strings("status")[measured]
    n = {name: int(np.count_nonzero(status == name)) for name in STATUSES}
    return {
        "total": len(status),
        "ok": n["ok"],
        "failed": n["http_error"] + n["timeout"] + n["protocol_error"],
        "aborted": n["aborted"],
        "not_streaming": n["not_streaming"],
        "left_open": int(np.count_nonzero(measured & _left_open(recording))),
        "without_done": int(np.count_nonzero(measured & _without_done(recording))),
    }


def _left_open(recording: Recording) -> Mask:
    ours = np.isin(recording.strings("error").astype(str), LEFT_OPEN)
    return np.asarray(ours & (recording.strings("status") == "aborted"), dtype=bool)


def _without_done(recording: Recording) -> Mask:
    if recording.meta.get("imported"):  # other tools' files do not say
        return np.zeros(len(recording), dtype=bool)
    ended = np.zeros(len(recording), dtype=bool)
    ended[recording.stream_of_chunk[recording.kind == DONE]] = True
    expected = np.isin(recording.strings("api").astype(str), ENDED_BY_DONE)
    return np.asarray(expected & (recording.strings("status") == "ok") & ~ended, dtype=bool)


def failures(recording: Recording, measured: Mask) -> list[dict[str, Any]]:
    """Each kind of failure with its count and its first message; a stream that the client left
    open did not fail."""
    status, error = recording.strings("status"), recording.strings("error")
    http_status = recording.ints("http_status", 0)
    kinds: dict[tuple[str, int | None], dict[str, Any]] = {}
    failed = measured & (status != "ok") & ~_left_open(recording)
    for row in np.flatnonzero(failed):
        http = int(http_status[row]) if status[row] == "http_error" else None
        kind = kinds.setdefault(
            (status[row], http),
            {"status": status[row], "http_status": http, "count": 0, "error": None},
        )
        kind["count"] += 1
        kind["error"] = kind["error"] or error[row] or None
    return sorted(kinds.values(), key=lambda kind: -kind["count"])


def tokens(recording: Recording, chunks: TokenChunks) -> dict[str, Any]:
    """Tokens received, and how tokens per chunk were known (`sources` counts streams)."""
    source = recording.strings("token_source")[chunks.stream[chunks.opens]].astype(str)
    names, counts = np.unique(source, return_counts=True)
    sources = {str(name): int(n) for name, n in zip(names, counts, strict=True)}
    used = next(iter(sources)) if len(sources) == 1 else "mixed" if sources else None
    return {"output": int(chunks.tokens.sum()), "source": used, "sources": sources}


def tokens_per_chunk(chunks: TokenChunks) -> dict[str, float | None]:
    """Tokens a chunk holds: under speculative decoding, the acceptance seen from outside."""
    if not len(chunks):
        return {"mean": None, "p50": None, "p99": None, "max": None}
    p50, p99 = np.quantile(chunks.tokens, [0.5, 0.99])
    return {
        "mean": float(chunks.tokens.mean()),
        "p50": float(p50),
        "p99": float(p99),
        "max": int(chunks.tokens.max()),
    }


def _duration_s(recording: Recording) -> float | None:
    load = recording.meta.get("load") or {}
    if load.get("busy_ns") is not None:
        return float(load["busy_ns"] / NS_PER_S)
    if load.get("started_ns") is not None and load.get("ended_ns") is not None:
        return float((load["ended_ns"] - load["started_ns"]) / NS_PER_S)
    sent = recording.ints("sent_ns")
    if not (sent >= 0).any():
        return None
    return float((recording.ints("ended_ns").max() - sent[sent >= 0].min()) / NS_PER_S)
