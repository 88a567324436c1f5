"""One file a protocol: how a request is built and what an event holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from legato.apis import anthropic, llamacpp, ollama, openai, responses, template, tgi, triton
from legato.apis.api import Api
from legato.apis.chunk import Chunk
from legato.errors import UsageError
from legato.wire import grpc

__all__ = ["APIS", "Api", "Chunk", "named"]

APIS = {
    api.name: api
    for api in (
        openai.CHAT,
        openai.COMPLETIONS,
        responses.API,
        anthropic.API,
        ollama.CHAT,
        ollama.GENERATE,
        tgi.API,
        triton.API,
        llamacpp.API,
    )
}


def named(source: str | Mapping[str, Any]) -> Api:
    """An API by its name, by the file of its template, or from what a template left in a plan."""
    if not isinstance(source, str):
        try:
            return template.from_document(source)
        except ValueError as error:
            raise UsageError(f"the plan's API template is wrong: {error}") from None
    if source in APIS:
        return APIS[source]
    if source.lower() in grpc.NAMES:
        raise UsageError(grpc.REFUSAL)
    if source.endswith(template.SUFFIXES):
        return template.from_file(source)
    raise UsageError(
        f"there is no API {source!r}; choose one of {', '.join(APIS)}, or give a template"
        " file that ends in .toml or .json"
    )
