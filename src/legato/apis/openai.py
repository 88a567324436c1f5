"""OpenAI chat and text completions, with what vLLM, SGLang and others add to their chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from legato.apis.chunk import Chunk, parse
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


def chat_body(
    model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    return _body(model, {"messages": [{"role": "user", "content": prompt}]}, output_tokens, extra)


def completions_body(
    model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    return _body(model, {"prompt": prompt}, output_tokens, extra)


def _body(
    model: str, prompt: dict[str, Any], output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """`extra` is merged in last; a null in it removes a field."""
    body: dict[str, Any] = {
        "model": model,
        **prompt,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if output_tokens is not None:
        body["max_tokens"] = output_tokens
    body |= extra
    return {name: value for name, value in body.items() if value is not None}


def decode_chat(data: bytes) -> Chunk:
    """One event of a chat stream; ValueError where it is none."""
    return _decode(data, _chat_part, "content")


def decode_completions(data: bytes) -> Chunk:
    """One event of a text-completion stream; ValueError where it is none."""
    return _decode(data, _completions_part, "tokens")


def _decode(data: bytes, part: Callable[[Any], tuple[int, str]], logprobs_list: str) -> Chunk:
    if data == b"[DONE]":
        return Chunk(DONE, terminal=True)
    event = parse(data)
    chunk = _envelope(event)
    choices = event.get("choices")
    if not choices:
        return chunk
    choice = choices[0]
    chunk.kind, chunk.text = part(choice)
    chunk.flags |= HAS_CHOICES
    chunk.finish_reason = choice.get("finish_reason")
    if chunk.finish_reason:
        chunk.flags |= HAS_FINISH
        if chunk.kind in (OTHER, ROLE):
            chunk.kind = FINISH
    elif chunk.kind in (OTHER, ROLE):
        chunk.flags |= EMPTY
    if (ids := choice.get("token_ids")) is not None:
        chunk.token_ids = len(ids)
    if logprobs := choice.get("logprobs"):
        chunk.logprobs = len(logprobs.get(logprobs_list) or ())
    return chunk


def _chat_part(choice: Any) -> tuple[int, str]:
    """(kind, text) of a chat delta."""
    delta = choice.get("delta") or {}
    if text := delta.get("content"):
        return CONTENT, _string(text)
    if reasoning := delta.get("reasoning_content") or delta.get("reasoning"):
        return REASONING, _string(reasoning)
    if calls := delta.get("tool_calls"):
        return TOOL, _tool_text(calls)
    return (ROLE if delta.get("role") else OTHER), ""


def _completions_part(choice: Any) -> tuple[int, str]:
    """(kind, text) of a piece of a text completion."""
    text = choice.get("text")
    return (CONTENT, _string(text)) if text else (OTHER, "")


def _envelope(event: Any) -> Chunk:
    """What every event carries beside its choices."""
    if not isinstance(event, dict):
        raise ValueError("an event is not a JSON object")
    chunk = Chunk(OTHER)
    if (response_id := event.get("id")) is not None:
        chunk.response_id = _string(response_id)
    if (model := event.get("model")) is not None:
        chunk.model = _string(model)
    usage = event.get("usage")
    if usage:
        chunk.flags |= HAS_USAGE
        chunk.kind = USAGE if not event.get("choices") else OTHER
        details = usage.get("prompt_tokens_details") or {}
        chunk.prompt_tokens = _tokens(usage.get("prompt_tokens"))
        chunk.output_tokens = _tokens(usage.get("completion_tokens"))
        chunk.cached_tokens = _tokens(details.get("cached_tokens"))
    # Older servers of the vLLM family send the error itself as the event.
    error = event.get("error") or (event if event.get("object") == "error" else None)
    if error:
        message = error.get("message") if isinstance(error, dict) else error
        chunk.error = str(message or "an error without a message")
    return chunk


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is not a string")
    # JSON can spell half of a surrogate pair, which nothing that stores text can hold.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _tokens(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError("a token count is not a whole number")
    return value


def _tool_text(calls: list[dict[str, Any]]) -> str:
    functions = [call.get("function") or {} for call in calls]
    return _string("".join((f.get("name") or "") + (f.get("arguments") or "") for f in functions))
