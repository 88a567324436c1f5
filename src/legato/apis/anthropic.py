"""Anthropic's Messages API, as Anthropic and the servers that imitate it stream it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from legato.apis import openai
from legato.apis.api import Api
from legato.apis.body import merged, user_says
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
    USAGE,
)

_VERSION = "2023-06-01"
_MAX_TOKENS = 4096  # the field is required: asked for where the user wants no particular length

# type of a delta: (kind, where its text is). The others, a signature and citations, are no tokens
# of the model.
_DELTAS = {
    "text_delta": (CONTENT, "text"),
    "thinking_delta": (REASONING, "thinking"),
    "input_json_delta": (TOOL, "partial_json"),
}
_BY_ITSELF = frozenset({"end_turn", "stop_sequence"})


def headers(key: str | None) -> dict[str, str]:
    version = {"anthropic-version": _VERSION}
    return version if key is None else version | {"x-api-key": key}


def body(
    model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    document = {
        "model": model,
        "messages": user_says(prompt),
        "stream": True,
        "max_tokens": _MAX_TOKENS if output_tokens is None else output_tokens,
    }
    return merged(document, extra)


def decode(data: bytes) -> Chunk:
    if data == b"[DONE]":  # not Anthropic's, but some gateways add it
        return Chunk(DONE, terminal=True)
    event = parse_object(data)
    kind = event.get("type")
    if kind == "content_block_delta":
        return _delta(event["delta"])
    if kind == "content_block_start":
        return _block(event["content_block"])
    if kind == "message_start":
        return _start(event["message"])
    if kind == "message_delta":
        return _finish(event)
    if kind == "message_stop":
        return Chunk(DONE, terminal=True)
    if kind == "error" or event.get("error"):
        return Chunk(OTHER, error=error_message(event.get("error")))
    return Chunk(OTHER, EMPTY)  # ping, content_block_stop, and what is yet to be invented


def _delta(delta: dict[str, Any]) -> Chunk:
    kind, field = _DELTAS.get(delta["type"], (OTHER, ""))
    text = string(delta.get(field) or "")
    return Chunk(kind, HAS_CHOICES, text) if text else Chunk(OTHER, EMPTY | HAS_CHOICES)


def _block(block: dict[str, Any]) -> Chunk:
    """The start of a part of the answer; of a tool call, it brings the name."""
    if name := block.get("name"):
        return Chunk(TOOL, HAS_CHOICES, string(name))
    return Chunk(OTHER, EMPTY)


def _start(message: dict[str, Any]) -> Chunk:
    """Its count of output tokens is a placeholder and not taken."""
    usage = message.get("usage") or {}
    chunk = Chunk(
        ROLE,
        EMPTY | (HAS_USAGE if usage else 0),
        response_id=optional_string(message.get("id")),
        model=optional_string(message.get("model")),
    )
    _read_prompt(usage, chunk)
    return chunk


def _finish(event: dict[str, Any]) -> Chunk:
    usage = event.get("usage") or {}
    reason = (event.get("delta") or {}).get("stop_reason")
    chunk = Chunk(
        FINISH if reason else USAGE,
        (HAS_USAGE if usage else 0) | (HAS_FINISH if reason else 0),
        finish_reason="stop" if reason in _BY_ITSELF else reason,
        output_tokens=token_count(usage.get("output_tokens")),
    )
    _read_prompt(usage, chunk)
    return chunk


def _read_prompt(usage: dict[str, Any], chunk: Chunk) -> None:
    """Anthropic counts apart what was read from a cache, written to it, and neither."""
    fresh = token_count(usage.get("input_tokens"))
    if fresh is not None:
        chunk.cached_tokens = token_count(usage.get("cache_read_input_tokens"))
        written = token_count(usage.get("cache_creation_input_tokens"))
        chunk.prompt_tokens = fresh + (chunk.cached_tokens or 0) + (written or 0)


API = Api(
    name="anthropic",
    path="/messages",
    body=body,
    decode=decode,
    base="/v1",
    listing=openai.LISTING,
    headers=headers,
    end="message_stop or a stop reason",
)
