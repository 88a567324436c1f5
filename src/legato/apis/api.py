"""What an API is: how a streamed answer is asked for over HTTP, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from legato.apis.chunk import Chunk

_SSE_TYPES = ("text/event-stream",)
_NDJSON_TYPES = (
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "application/jsonlines",
    "application/stream+json",
)


def bearer(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}


def nothing_more(_served_by: str | None, _fixed_length: bool) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Listing:
    """Where a server says which models it has."""

    path: str  # after the base; `{model}` where only one model can be asked about
    models: Callable[[Any], dict[str, str | None]]  # from its JSON: model → who serves it


@dataclass(frozen=True, slots=True)
class Api:
    """A way to ask for a streamed answer and to read it."""

    name: str
    path: str  # after the base; `{model}` stands for the model
    body: Callable[[str, str, int | None, Mapping[str, Any]], dict[str, Any]]
    decode: Callable[[bytes], Chunk]
    base: str = ""  # the base of a URL without a path
    sibling: str | None = None  # the base of another API of the same servers, taken for this one's
    listing: Listing | None = None
    names_model: bool = True  # a request says which model it is for
    headers: Callable[[str | None], dict[str, str]] = bearer  # from the key
    extras: Callable[[str | None, bool], dict[str, Any]] = nothing_more  # for who serves it
    ndjson: bool = False  # a JSON object a line, instead of server-sent events
    content_types: tuple[str, ...] = ()  # that stream, beside the usual ones
    end: str | None = None  # what a whole stream shows at its end; None: nothing but its end
    document: Mapping[str, Any] | None = None  # of a template: what reads its streams again

    def base_path(self, given: str) -> str:
        """The base to put before paths, from a URL's path: people give the base, the base of the
        server's other API, the whole URL of the endpoint, or none."""
        given = given.rstrip("/")
        if given.endswith(self.path):
            return given.removesuffix(self.path)
        if not given:
            return self.base
        if self.sibling is not None and given.endswith(self.sibling):
            return given.removesuffix(self.sibling) + self.base
        return given

    def path_for(self, model: str) -> str:
        return with_model(self.path, model)

    def accepts(self) -> str:
        """The `Accept` header."""
        return ", ".join((*self._usual_types()[:1], *self.content_types))

    def streams(self, content_type: str) -> bool:
        """Is a body of this type a stream, or an answer that came whole?"""
        essence = content_type.partition(";")[0].strip().lower()
        return essence in self._usual_types() or essence in self.content_types

    def _usual_types(self) -> tuple[str, ...]:
        return _NDJSON_TYPES if self.ndjson else _SSE_TYPES


def with_model(path: str, model: str) -> str:
    return path.replace("{model}", quote(model, safe=""))
