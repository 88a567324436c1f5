"""One file a protocol: how a request is built and what an event holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from legato.apis import openai
from legato.apis.chunk import Chunk
from legato.errors import UsageError

__all__ = ["APIS", "Api", "Chunk", "named"]


@dataclass(frozen=True, slots=True)
class Api:
    """A way to ask for a streamed answer and to read it."""

    name: str
    path: str  # after the base URL
    body: Callable[[str, str, int | None, Mapping[str, Any]], dict[str, Any]]
    decode: Callable[[bytes], Chunk]


APIS = {
    "chat": Api("chat", "/chat/completions", openai.chat_body, openai.decode_chat),
    "completions": Api(
        "completions", "/completions", openai.completions_body, openai.decode_completions
    ),
}


def named(name: str) -> Api:
    if name not in APIS:
        raise UsageError(f"there is no API {name!r}; choose one of {', '.join(APIS)}")
    return APIS[name]
