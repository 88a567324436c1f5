"""What one event of a stream holds, whatever protocol it came by."""

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
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None  # of the whole answer so far
    cached_tokens: int | None = None
    token_ids: int | None = None  # how many ids the chunk lists
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
