"""OpenAI chat and text completions, with what vLLM, SGLang and others add to their chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from legato.apis.api import Api, Listing
from legato.apis.body import merged, user_says
from legato.apis.chunk import Chunk, error_message, parse, string, token_count
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

# Servers that say who they are in `/models` and take these fields; others answer 400 to what
# they do not know, so they are not sent them.
_KNOWS_IGNORE_EOS = frozenset({"vllm", "sglang", "metronome", "legato", "llamacpp"})
_KNOWS_CHUNK_USAGE = frozenset({"vllm", "sglang", "metronome", "legato"})


def chat_body(
    model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    return _body(model, {"messages": user_says(prompt)}, output_tokens, extra)


def completions_body(
    model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    return _body(model, {"prompt": prompt}, output_tokens, extra)


def _body(
    model: str, prompt: dict[str, Any], output_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        **prompt,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if output_tokens is not None:
        body["max_tokens"] = output_tokens
    return merged(body, extra)


def extras(served_by: str | None, fixed_length: bool) -> dict[str, Any]:
    """What more to ask of a server that said who it is."""
    more: dict[str, Any] = {}
    if fixed_length and served_by in _KNOWS_IGNORE_EOS:
        more["ignore_eos"] = True
    if served_by in _KNOWS_CHUNK_USAGE:
        more["stream_options"] = {"continuous_usage_stats": True}
    return more


def listed_models(document: Any) -> dict[str, str | None]:
    """`/models`: each model and its `owned_by`, which names the software where it is ours."""
    return {string(entry["id"]): entry.get("owned_by") for entry in document["data"]}


LISTING = Listing("/models", listed_models)


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
    reasoning = delta.get("reasoning_content") or delta.get("reasoning") or ""
    # A refusal is an answer like any other, token by token.
    if text := delta.get("content") or delta.get("refusal"):
        return CONTENT, string(reasoning) + _content_text(text)
    if reasoning:
        return REASONING, string(reasoning)
    calls = delta.get("tool_calls") or []
    if delta.get("function_call"):  # as it was before there were several
        calls = [{"function": delta["function_call"]}]
    if called := _tool_text(calls):
        return TOOL, called
    return (ROLE if delta.get("role") else OTHER), ""


def _content_text(content: Any) -> str:
    """Text, or the text among the parts of a message."""
    if not isinstance(content, list):
        return string(content)
    return "".join(string(part["text"]) for part in content if part.get("text"))


def _completions_part(choice: Any) -> tuple[int, str]:
    """(kind, text) of a piece of a text completion."""
    text = choice.get("text")
    return (CONTENT, string(text)) if text else (OTHER, "")


def _envelope(event: Any) -> Chunk:
    """What every event carries beside its choices."""
    if not isinstance(event, dict):
        raise ValueError("an event is not a JSON object")
    chunk = Chunk(OTHER)
    if (response_id := event.get("id")) is not None:
        chunk.response_id = string(response_id)
    if (model := event.get("model")) is not None:
        chunk.model = string(model)
    usage = event.get("usage")
    if usage:
        chunk.flags |= HAS_USAGE
        chunk.kind = USAGE if not event.get("choices") else OTHER
        details = usage.get("prompt_tokens_details") or {}
        chunk.prompt_tokens = token_count(usage.get("prompt_tokens"))
        chunk.output_tokens = token_count(usage.get("completion_tokens"))
        spent = usage.get("completion_tokens_details") or {}
        chunk.reasoning_tokens = token_count(spent.get("reasoning_tokens"))
        chunk.cached_tokens = token_count(details.get("cached_tokens"))
    # Older servers of the vLLM family send the error itself as the event.
    error = event.get("error") or (event if event.get("object") == "error" else None)
    if error:
        chunk.error = error_message(error)
    return chunk


def _tool_text(calls: list[dict[str, Any]]) -> str:
    functions = [call.get("function") or {} for call in calls]
    return string("".join((f.get("name") or "") + (f.get("arguments") or "") for f in functions))


CHAT = Api(
    name="chat",
    path="/chat/completions",
    body=chat_body,
    decode=decode_chat,
    base="/v1",
    listing=LISTING,
    extras=extras,
    end="[DONE] or a finish reason",
)
COMPLETIONS = Api(
    name="completions",
    path="/completions",
    body=completions_body,
    decode=decode_completions,
    base="/v1",
    listing=LISTING,
    extras=extras,
    end="[DONE] or a finish reason",
)
