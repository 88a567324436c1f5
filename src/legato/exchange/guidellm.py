"""GuideLLM's JSON report: of each request the first and the last token, and no gap between."""

from __future__ import annotations

from typing import Any

from legato.errors import UsageError
from legato.exchange.imported import (
    NO_CONNECTIONS,
    NO_KERNEL_STAMPS,
    NS_PER_S,
    Imported,
    Times,
    number,
    value,
    whole,
)
from legato.recording import Stream

MISSING = [
    "the gaps: a request has the times of its first and last token only, so each answer is one "
    "gap shared evenly by its tokens, and ITL percentiles are those of means of requests",
    NO_KERNEL_STAMPS,
    "chunks: how tokens lay in them, role, usage and end marks",
    NO_CONNECTIONS,
]
_GROUPS = {"successful": "ok", "incomplete": "aborted", "errored": "http_error"}


def recognises(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("benchmarks"), list)


def read(document: Any) -> list[Imported]:
    """One for each benchmark of the report."""
    version = (document.get("metadata") or {}).get("guidellm_version")
    runs = [
        _run(benchmark, f"benchmark {i}", version)
        for i, benchmark in enumerate(document["benchmarks"], 1)
    ]
    if not any(run.streams for run in runs):
        raise UsageError("the report holds no requests: GuideLLM was told not to sample any")
    return runs


def _run(benchmark: Any, where: str, version: str | None) -> Imported:
    requests = value(benchmark, "requests", where=where)
    streams = [
        _stream(request, status, f"{where}, {group} request {i}")
        for group, status in _GROUPS.items()
        for i, request in enumerate(requests.get(group) or [], 1)
    ]
    return Imported("guidellm", streams, _settings(benchmark), MISSING, version)


def _settings(benchmark: Any) -> dict[str, Any]:
    config = benchmark.get("config") or {}
    backend, strategy = config.get("backend") or {}, config.get("strategy") or {}
    settings = {
        "url": backend.get("target"),
        "model": backend.get("model"),
        "api": "chat" if "chat" in str(backend.get("request_format")) else "completions",
        "concurrency": whole(strategy, "streams"),
        "rate": strategy.get("rate"),
        "stamps": "user",
    }
    if settings["concurrency"]:
        settings["mode"] = "closed"
    return {name: found for name, found in settings.items() if found is not None}


def _stream(request: Any, status: str, where: str) -> Stream:
    info = value(request, "info", where=where)
    clock = value(info, "timings", where=where)
    if clock.get("request_start") is None:
        # It was never sent: cut before its turn came.
        at_ns = _moment(clock, "queued", where)
        return Stream(stream_id=0, scheduled_ns=at_ns, ended_ns=at_ns, status="aborted")
    sent_ns = _moment(clock, "request_start", where)
    end = next(n for n in ("request_end", "resolve_end", "request_start") if clock.get(n))
    tokens = whole(request, "output_tokens") or 0
    times = _times(clock, sent_ns, tokens, where)
    return Stream(
        stream_id=0,
        session_id=info.get("conversation_id"),
        turn=whole(info, "turn_index"),
        response_id=request.get("response_id"),
        scheduled_ns=_moment(clock, "targeted_start", where)
        if clock.get("targeted_start")
        else sent_ns,
        sent_ns=sent_ns,
        ended_ns=_moment(clock, end, where),
        status=status if times.arrival_ns or status != "ok" else "not_streaming",
        error=str(info["error"]) if info.get("error") else None,
        prompt_tokens=whole(request, "prompt_tokens"),
        output_tokens=tokens or None,
        cached_tokens=whole(request, "cached_tokens"),
        token_source="usage_spread",
        **times.columns(),
    )


def _times(clock: Any, sent_ns: int, tokens: int, where: str) -> Times:
    if clock.get("first_token_iteration") is None:
        return Times()
    first_ns = _moment(clock, "first_token_iteration", where) - sent_ns
    last_ns = _moment(clock, "last_token_iteration", where) - sent_ns
    if tokens < 2 or last_ns <= first_ns:
        return Times([first_ns], [max(tokens, 1)])
    return Times([first_ns, last_ns], [1, tokens - 1])


def _moment(clock: Any, name: str, where: str) -> int:
    return round(number(clock, name, where=where) * NS_PER_S)
