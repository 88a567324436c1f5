"""OpenAI's Responses API: typed events, of which the `*.delta` ones hold tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from legato.apis import openai
from legato.apis.api import Api
from legato.apis.body import merged
from legato.apis.chunk import (
    Chunk,
    error_message,
    optional_string,
    parse_object,
    string,
    token_count,
)
from legato.recording import (
    CONTENT,
    DONE,
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    HAS_USAGE,
    OTHER,
    REASONING,
    ROLE,
    TOOL,
)

_DELTAS = {
    "response.output_text.delta": CONTENT,
    "response.refusal.delta": CONTENT,
    "response.reasoning_text.delta": REASONING,
    "response.reasoning_summary_text.delta": REASONING,
    "response.function_call_arguments.delta": TOOL,
    "response.custom_tool_call_input.delta": TOOL,
    "response.mcp_call_arguments.delta": TOOL,
    "response.code_interpreter_call_code.delta": TOOL,
}
_CALLS = frozenset({"function_call", "custom_tool_call", "mcp_call"})


def body(
    model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    document: dict[str, Any] = {"model": model, "input": prompt, "stream": True}
    if output_tokens is not None:
        document["max_output_tokens"] = output_tokens
    return merged(document, extra)


def decode(data: bytes) -> Chunk:
    if data == b"[DONE]":  # not OpenAI's, but some servers add it
        return Chunk(DONE, terminal=True)
    event = parse_object(data)
    kind = event.get("type")
    if (holds := _DELTAS.get(kind or "")) is not None:
        return _delta(event, holds)
    if kind == "response.output_item.added":
        return _item(event["item"])
    if kind in ("response.created", "response.in_progress", "response.queued"):
        response = event["response"]
        return Chunk(
            ROLE if kind == "response.created" else OTHER,
            EMPTY,
            response_id=optional_string(response.get("id")),
            model=optional_string(response.get("model")),
        )
    if kind in ("response.completed", "response.incomplete"):
        return _end(event["response"])
    if kind == "response.failed":
        return Chunk(OTHER, error=error_message(event["response"].get("error")))
    if kind == "error":
        return Chunk(OTHER, error=error_message(event.get("error") or event))
    if kind is None and event.get("error"):
        return Chunk(OTHER, error=error_message(event["error"]))
    return Chunk(OTHER, EMPTY)


def _delta(event: dict[str, Any], kind: int) -> Chunk:
    text = string(event["delta"])
    if not text:
        return Chunk(OTHER, EMPTY | HAS_CHOICES)
    logprobs = event.get("logprobs")
    return Chunk(kind, HAS_CHOICES, text, logprobs=len(logprobs) if logprobs else None)


def _item(item: dict[str, Any]) -> Chunk:
    """The start of a part of the answer; of a tool call, it brings the name."""
    if item.get("type") in _CALLS and (name := item.get("name")):
        return Chunk(TOOL, HAS_CHOICES, string(name))
    return Chunk(OTHER, EMPTY)


def _end(response: dict[str, Any]) -> Chunk:
    usage = response.get("usage") or {}
    cached = usage.get("input_tokens_details") or {}
    spent = usage.get("output_tokens_details") or {}
    cut_short = response.get("incomplete_details") or {}
    return Chunk(
        FINISH,
        HAS_FINISH | (HAS_USAGE if usage else 0),
        response_id=optional_string(response.get("id")),
        finish_reason=cut_short.get("reason") or "stop",
        prompt_tokens=token_count(usage.get("input_tokens")),
        output_tokens=token_count(usage.get("output_tokens")),
        reasoning_tokens=token_count(spent.get("reasoning_tokens")),
        cached_tokens=token_count(cached.get("cached_tokens")),
        terminal=True,
    )


API = Api(
    name="responses",
    path="/responses",
    body=body,
    decode=decode,
    base="/v1",
    listing=openai.LISTING,
    end="response.completed or response.incomplete",
)
