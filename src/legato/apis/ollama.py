"""Ollama's own API: a JSON object a line, from `/api/chat` or `/api/generate`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from legato.apis.api import Api, Listing
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
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    HAS_USAGE,
    OTHER,
    REASONING,
    TOOL,
)


def chat_body(
    model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    return _body(model, {"messages": user_says(prompt)}, output_tokens, extra)


def generate_body(
    model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    return _body(model, {"prompt": prompt}, output_tokens, extra)


def _body(
    model: str, prompt: dict[str, Any], output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    document: dict[str, Any] = {"model": model, **prompt, "stream": True}
    if output_tokens is not None:
        document["options"] = {"num_predict": output_tokens}
    return merged(document, extra)


def listed_models(document: Any) -> dict[str, str | None]:
    """A model is asked for by its name with or without the tag `latest`."""
    names = [string(entry["name"]) for entry in document["models"]]
    return dict.fromkeys((*names, *(name.removesuffix(":latest") for name in names)), "ollama")


def decode_chat(data: bytes) -> Chunk:
    event = parse_object(data)
    message = event.get("message") or {}
    return _decode(event, message, message.get("content"))


def decode_generate(data: bytes) -> Chunk:
    event = parse_object(data)
    return _decode(event, event, event.get("response"))


def _decode(event: dict[str, Any], part: dict[str, Any], content: Any) -> Chunk:
    if event.get("error"):
        return Chunk(OTHER, error=error_message(event["error"]))
    chunk = Chunk(OTHER, HAS_CHOICES, model=optional_string(event.get("model")))
    if content:
        chunk.kind, chunk.text = CONTENT, string(content)
    elif thinking := part.get("thinking"):
        chunk.kind, chunk.text = REASONING, string(thinking)
    elif calls := part.get("tool_calls"):
        chunk.kind, chunk.text = TOOL, _tool_text(calls)
    if logprobs := event.get("logprobs"):
        chunk.logprobs = len(logprobs)
    if event.get("done"):
        _read_end(event, chunk)
    elif chunk.kind == OTHER:
        chunk.flags |= EMPTY
    return chunk


def _read_end(event: dict[str, Any], chunk: Chunk) -> None:
    if chunk.kind == OTHER:
        chunk.kind = FINISH
    chunk.terminal = True
    chunk.finish_reason = event.get("done_reason") or "stop"
    chunk.prompt_tokens = token_count(event.get("prompt_eval_count"))
    chunk.output_tokens = token_count(event.get("eval_count"))
    chunk.flags |= HAS_FINISH | (0 if chunk.output_tokens is None else HAS_USAGE)


def _tool_text(calls: list[dict[str, Any]]) -> str:
    functions = [call.get("function") or {} for call in calls]
    return string(
        "".join(f"{f.get('name') or ''}{json.dumps(f.get('arguments') or {})}" for f in functions)
    )


CHAT = Api(
    name="ollama",
    path="/chat",
    body=chat_body,
    decode=decode_chat,
    base="/api",
    sibling="/v1",
    listing=Listing("/tags", listed_models),
    ndjson=True,
    end='"done": true',
)
GENERATE = Api(
    name="ollama-generate",
    path="/generate",
    body=generate_body,
    decode=decode_generate,
    base="/api",
    sibling="/v1",
    listing=Listing("/tags", listed_models),
    ndjson=True,
    end='"done": true',
)
