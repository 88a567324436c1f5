"""What a request asks for: the JSON body of a completion, checked and reduced to what matters.

Pure. What cannot be served is refused as OpenAI's servers refuse it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from legato.errors import UsageError
from legato.metronome.pattern import Pattern, replaced
from legato.metronome.request import BadRequest

MODEL = "metronome"
MAX_TOKENS = 10_000_000


@dataclass(frozen=True, slots=True)
class Ask:
    """One completion asked for; `pattern` has the request's own changes in it."""

    api: str
    pattern: Pattern
    stream: bool
    tokens: int
    finish_reason: str
    prompt_tokens: int
    include_usage: bool
    continuous_usage: bool
    token_ids: bool
    logprobs: bool


def ask_of(api: str, body: bytes, pattern: Pattern) -> Ask:
    """Read a request's body; raises BadRequest."""
    document = _object(body)
    model = document.get("model", MODEL)
    if model != MODEL:
        raise BadRequest(
            404, f"The model `{model}` does not exist; there is `{MODEL}`.", "model_not_found"
        )
    if document.get("n", 1) not in (1, None):
        raise BadRequest(400, "n must be 1: the metronome gives one choice")
    pattern = _own_pattern(document, pattern)
    tokens, finish_reason = _length(document, pattern)
    options = document.get("stream_options") or {}
    if not isinstance(options, dict):
        raise BadRequest(400, "stream_options must be an object")
    stream = bool(document.get("stream"))
    usage = pattern.usage and bool(options.get("include_usage"))
    return Ask(
        api=api,
        pattern=pattern,
        stream=stream,
        tokens=tokens,
        finish_reason=finish_reason,
        prompt_tokens=_prompt_tokens(api, document),
        include_usage=usage,
        continuous_usage=usage and bool(options.get("continuous_usage_stats")),
        token_ids=bool(document.get("return_token_ids")),
        # Text completions ask by a number (0 counts), chats by true.
        logprobs=document.get("logprobs") not in (None, False),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise BadRequest(400, f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRequest(400, "the body must be a JSON object")
    return document


def _own_pattern(document: dict[str, Any], pattern: Pattern) -> Pattern:
    changes = document.get("metronome")
    if changes is None:
        return pattern
    if not isinstance(changes, dict):
        raise BadRequest(400, '"metronome" must be an object of pattern fields')
    try:
        return replaced(pattern, changes)
    except UsageError as error:
        raise BadRequest(400, f'in "metronome": {error}') from None


def _length(document: dict[str, Any], pattern: Pattern) -> tuple[int, str]:
    """(tokens of the answer, why it finishes there)."""
    limit = document.get("max_completion_tokens")
    if limit is None:
        limit = document.get("max_tokens")
    if limit is None:
        return pattern.tokens, "stop"
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_TOKENS:
        raise BadRequest(400, f"max_tokens is {limit!r}; it must be from 1 to {MAX_TOKENS}")
    if document.get("ignore_eos") or limit <= pattern.tokens:
        return limit, "length"
    return pattern.tokens, "stop"


def _prompt_tokens(api: str, document: dict[str, Any]) -> int:
    """Words of the prompt: cheap, and the same for the same prompt."""
    if api == "text":
        prompt = document.get("prompt")
        if isinstance(prompt, str):
            return len(prompt.split())
        if not isinstance(prompt, list):
            raise BadRequest(400, "prompt must be a string or a list")
        return sum(len(part.split()) if isinstance(part, str) else 1 for part in prompt)
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest(400, "messages must be a list of at least one message")
    return sum(_message_tokens(message) for message in messages)


def _message_tokens(message: Any) -> int:
    if not isinstance(message, dict):
        raise BadRequest(400, "a message must be an object")
    content = message.get("content")
    if isinstance(content, str):
        return len(content.split())
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return sum(len(text.split()) for text in texts if isinstance(text, str))
    return 0
