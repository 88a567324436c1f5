"""Hugging Face TGI's own `/generate_stream`: an event a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from legato.apis.api import Api, Listing
from legato.apis.body import merged
from legato.apis.chunk import Chunk, error_message, parse_object, string, token_count
from legato.recording import (
    CONTENT,
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    HAS_USAGE,
    OTHER,
)

_BY_ITSELF = frozenset({"eos_token", "stop_sequence"})


def body(
    _model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    parameters: dict[str, Any] = {"details": True}
    if output_tokens is not None:
        parameters["max_new_tokens"] = output_tokens
    return merged({"inputs": prompt, "parameters": parameters}, extra)


def listed_models(document: Any) -> dict[str, str | None]:
    return {string(document["model_id"]): "tgi"}


def decode(data: bytes) -> Chunk:
    event = parse_object(data)
    if event.get("error"):
        return Chunk(OTHER, error=error_message(event["error"]))
    chunk = _token(event["token"])
    if event.get("generated_text") is not None:
        _read_end(event.get("details") or {}, chunk)
    return chunk


def _token(token: dict[str, Any]) -> Chunk:
    """A token that completes no character has no text yet, but it has come; an end token shows
    nothing of the answer."""
    if token.get("special"):
        return Chunk(OTHER, HAS_CHOICES | EMPTY)
    text = string(token["text"])
    return Chunk(CONTENT, HAS_CHOICES | (0 if text else EMPTY), text, token_ids=1)


def _read_end(details: dict[str, Any], chunk: Chunk) -> None:
    if chunk.kind == OTHER:
        chunk.kind = FINISH
    reason = details.get("finish_reason") or "stop"
    chunk.terminal = True
    chunk.finish_reason = "stop" if reason in _BY_ITSELF else reason
    chunk.prompt_tokens = token_count(details.get("input_length"))
    chunk.output_tokens = token_count(details.get("generated_tokens"))
    chunk.flags |= HAS_FINISH | (HAS_USAGE if details else 0)
    chunk.flags &= ~EMPTY


API = Api(
    name="tgi",
    path="/generate_stream",
    body=body,
    decode=decode,
    sibling="/v1",
    listing=Listing("/info", listed_models),
    names_model=False,
    end="the generated text that the last event repeats",
)
