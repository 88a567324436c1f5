"""AIPerf's `profile_export.jsonl`: a line a request, with the gaps of its content responses."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from legato.exchange.imported import (
    NO_CONNECTIONS,
    NO_KERNEL_STAMPS,
    NS_PER_MS,
    Imported,
    Times,
    number,
    numbers,
    spread,
    value,
    whole,
)
from legato.recording import Stream

MISSING = [
    NO_KERNEL_STAMPS,
    "tokens of each chunk: the answer's tokens are spread evenly where they are more than chunks",
    "role, usage and end marks: AIPerf keeps content responses only",
    NO_CONNECTIONS,
]


def recognises(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and isinstance(document.get("metadata"), dict)
        and "request_start_ns" in document["metadata"]
    )


def read(lines: list[Any]) -> Imported:
    return Imported(
        tool="aiperf",
        streams=[_stream(line, f"line {i}") for i, line in enumerate(lines, 1)],
        settings={"api": "chat", "stamps": "user"},
        missing=MISSING,
    )


def _stream(line: Any, where: str) -> Stream:
    about = value(line, "metadata", where=where)
    metrics = value(line, "metrics", where=where)
    sent_ns = round(number(about, "request_start_ns", where=where))
    error = line.get("error") or {}
    times, source = _times(metrics, where)
    return Stream(
        stream_id=0,
        session_id=str(about["x_correlation_id"]) if about.get("x_correlation_id") else None,
        turn=whole(about, "turn_index"),
        scheduled_ns=whole(about, "credit_issued_ns") or sent_ns,
        sent_ns=sent_ns,
        first_byte_ns=whole(about, "request_ack_ns"),
        ended_ns=round(number(about, "request_end_ns", where=where)),
        phase="warmup" if about.get("benchmark_phase") == "warmup" else "steady",
        reused=bool(whole(metrics, "http_req_connection_reused", "value")),
        status=_status(about, error, times),
        http_status=whole(error, "code") if error else 200,
        error=str(error.get("message") or error.get("type")) if error else None,
        prompt_tokens=whole(metrics, "usage_prompt_tokens", "value")
        or whole(metrics, "input_sequence_length", "value"),
        output_tokens=whole(metrics, "usage_completion_tokens", "value"),
        text_tokens=whole(metrics, "output_sequence_length", "value"),
        token_source=source,
        **times.columns(),
    )


def _times(metrics: Any, where: str) -> tuple[Times, str]:
    if "time_to_first_token" not in metrics:
        return Times(), "chunks"
    first_ms = number(metrics, "time_to_first_token", "value", where=where)
    gaps_ms = (
        numbers(metrics, "inter_chunk_latency", "value", where=where)
        if "inter_chunk_latency" in metrics
        else []
    )
    arrival_ns = [round(ms * NS_PER_MS) for ms in accumulate([first_ms, *gaps_ms])]
    total = whole(metrics, "usage_completion_tokens", "value")
    total = total or whole(metrics, "output_sequence_length", "value") or 0
    tokens, source = spread(total, len(arrival_ns))
    return Times(arrival_ns, tokens), source


def _status(about: Any, error: Any, times: Times) -> str:
    if about.get("was_cancelled"):
        return "aborted"
    if error:
        return "http_error" if not times.arrival_ns else "aborted"
    return "ok" if times.arrival_ns else "not_streaming"
