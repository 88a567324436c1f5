"""Triton's `generate_stream`: the model's output tensors as events, and no end marker."""

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
from legato.recording import CONTENT, EMPTY, FINISH, HAS_CHOICES, HAS_FINISH, OTHER


def body(
    _model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """Triton passes a field on as a tensor where the model has an input of that name (the
    TensorRT-LLM backend), else as a parameter (the vLLM backend)."""
    document: dict[str, Any] = {"text_input": prompt, "stream": True}
    if output_tokens is not None:
        document["max_tokens"] = output_tokens
    return merged(document, extra)


def listed_models(document: Any) -> dict[str, str | None]:
    return {string(document["name"]): optional_string(document.get("platform")) or "triton"}


def decode(data: bytes) -> Chunk:
    event = parse_object(data)
    if event.get("error"):
        return Chunk(OTHER, error=error_message(event["error"]))
    output = event["text_output"]
    text = string("".join(output) if isinstance(output, list) else output)
    # The last two are outputs of the vLLM backend that a request has to ask for.
    finish_reason = event.get("finish_reason")
    if finish_reason == "None":
        finish_reason = None
    return Chunk(
        CONTENT if text else FINISH if finish_reason else OTHER,
        HAS_CHOICES | (HAS_FINISH if finish_reason else 0 if text else EMPTY),
        text,
        finish_reason=optional_string(finish_reason),
        response_id=optional_string(event.get("id") or None),
        model=optional_string(event.get("model_name")),
        token_ids=token_count(event.get("num_output_tokens")),
    )


API = Api(
    name="triton",
    path="/models/{model}/generate_stream",
    body=body,
    decode=decode,
    base="/v2",
    listing=Listing("/models/{model}", listed_models),
)
