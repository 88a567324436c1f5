"""What one event of a stream holds, whatever protocol it came by, and how its JSON is checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

# `json.loads` spends half its time on guessing encodings and on calls; a capture has millions.
_scan = json.JSONDecoder().raw_decode


@dataclass(slots=True)
class Chunk:
    """`kind` and `flags` as the recording has them; None where the event does not say."""

    kind: int
    flags: int = 0
    text: str = ""
    response_id: str | None = None
    model: str | None = None
    finish_reason: str | None = None  # "stop" where the model ended its answer by itself
    prompt_tokens: int | None = None
    output_tokens: int | None = None  # of the whole answer so far
    reasoning_tokens: int | None = None  # of these, the ones spent on reasoning, shown or not
    cached_tokens: int | None = None
    token_ids: int | None = None  # how many tokens the chunk says or lists that it has
    logprobs: int | None = None  # how many log-probabilities it lists
    error: str | None = None
    terminal: bool = False  # the protocol's own end marker


def parse(data: bytes) -> Any:
    """An event's JSON; ValueError where it is none."""
    text = data.decode().strip()
    value, end = _scan(text)
    if end != len(text):
        raise ValueError(f"something follows the JSON at {end}")
    return value


def parse_object(data: bytes) -> dict[str, Any]:
    """An event that is a JSON object; ValueError where it is none."""
    event = parse(data)
    if not isinstance(event, dict):
        raise ValueError("an event is not a JSON object")
    return event


def string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is not a string")
    # JSON can spell half of a surrogate pair, which nothing that stores text can hold.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def optional_string(value: Any) -> str | None:
    return None if value is None else string(value)


MAX_TOKENS = 10_000_000  # of one answer; some figures keep an entry a token


def token_count(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_TOKENS:
        raise ValueError("a token count is not a whole number that an answer can have")
    return value


def error_message(error: Any) -> str:
    """The sentence of an error, which some servers wrap in an object."""
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or "an error without a message")
