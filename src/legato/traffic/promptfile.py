"""Prompts from a file: a text with a prompt a line, JSONL of request bodies, or ShareGPT JSON.

What a file is, is told by what it holds, not by its name. One bad line is named and refuses the
file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legato.errors import UsageError

_TURNS = ("conversations", "conversation")
_HUMAN = frozenset({"human", "user"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One request: a prompt's text, or fields of a request body."""

    prompt: str | None = None
    fields: dict[str, Any] | None = None


def read(path: str) -> list[Entry]:
    text = _text(path)
    start = text.lstrip()[:1]
    if start == "[":
        entries = _share_gpt(path, text)
    elif start == "{":
        entries = [
            _body(path, number, line)
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip()
        ]
    else:
        entries = [Entry(line.strip()) for line in text.splitlines() if line.strip()]
    if not entries:
        raise UsageError(f"the prompt file {path} holds no prompt")
    return entries


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the prompt file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"the prompt file {path} is not UTF-8 at byte {error.start}") from None


def _body(path: str, number: int, line: str) -> Entry:
    """A line of an OpenAI body: `messages`, or `prompt` as text."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError(f"line {number} of the prompt file {path} is not JSON") from None
    if isinstance(fields, dict) and isinstance(fields.get("prompt"), str):
        return Entry(fields.pop("prompt"), fields)
    if isinstance(fields, dict) and _are_messages(fields.get("messages")):
        return Entry(None, fields)
    raise UsageError(
        f"line {number} of the prompt file {path} has neither 'messages' nor a 'prompt' text"
    )


def _are_messages(value: Any) -> bool:
    return bool(
        isinstance(value, list)
        and value
        and all(isinstance(message, dict) and "role" in message for message in value)
    )


def _share_gpt(path: str, text: str) -> list[Entry]:
    """The first human turn of each conversation; a conversation without one is skipped."""
    try:
        conversations = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the prompt file {path} is not JSON: {error}") from None
    entries = []
    for number, conversation in enumerate(conversations, 1):
        turns = _turns(conversation)
        if turns is None:
            raise UsageError(
                f"entry {number} of the prompt file {path} is not a ShareGPT conversation"
            )
        first = next((turn for turn in turns if turn.get("from") in _HUMAN), None)
        if first is not None and isinstance(first.get("value"), str) and first["value"].strip():
            entries.append(Entry(first["value"]))
    return entries


def _turns(conversation: Any) -> list[dict[str, Any]] | None:
    if not isinstance(conversation, dict):
        return None
    turns = next((conversation[name] for name in _TURNS if name in conversation), None)
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return None
    return turns
