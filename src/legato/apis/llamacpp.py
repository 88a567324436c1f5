"""llama.cpp's own `/completion`: every event says how many tokens were made so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from legato.apis.api import Api, Listing
from legato.apis.body import merged
from legato.apis.chunk import (
    Chunk,
    error_message,
    optional_string,
    parse_object,
    string,
    token_count,
)
from legato.apis.openai import listed_models
from legato.recording import (
    CONTENT,
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    HAS_USAGE,
    OTHER,
)


def body(
    _model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    document: dict[str, Any] = {"prompt": prompt, "stream": True}
    if output_tokens is not None:
        document |= {"n_predict": output_tokens, "ignore_eos": True}
    return merged(document, extra)


def decode(data: bytes) -> Chunk:
    event = parse_object(data)
    if event.get("error"):
        return Chunk(OTHER, error=error_message(event["error"]))
    text = string(event["content"])
    chunk = Chunk(CONTENT if text else OTHER, HAS_CHOICES, text)
    # `tokens` is not used: a character of several tokens comes with the last one's id only.
    chunk.output_tokens = token_count(event.get("tokens_predicted"))
    if chunk.output_tokens is not None:
        chunk.flags |= HAS_USAGE
        chunk.prompt_tokens = token_count(event.get("tokens_evaluated"))
    if event.get("stop"):
        _read_end(event, chunk)
    elif not text:
        chunk.flags |= EMPTY
    return chunk


def _read_end(event: dict[str, Any], chunk: Chunk) -> None:
    if chunk.kind == OTHER:
        chunk.kind = FINISH
    limited = event.get("stop_type") == "limit" or event.get("stopped_limit")
    chunk.flags |= HAS_FINISH
    chunk.terminal = True
    chunk.finish_reason = "length" if limited else "stop"
    chunk.model = optional_string(event.get("model"))
    chunk.cached_tokens = token_count((event.get("timings") or {}).get("cache_n"))


API = Api(
    name="llamacpp",
    path="/completion",
    body=body,
    decode=decode,
    sibling="/v1",
    listing=Listing("/v1/models", listed_models),
    names_model=False,
    end='"stop": true',
)
