"""An API that a user describes in a TOML or JSON file: anything that streams server-sent events
or lines of JSON over HTTP. What is wrong with it is told in a sentence before anything is sent."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legato.apis.api import Api, bearer
from legato.apis.body import merged
from legato.apis.chunk import Chunk, error_message, optional_string, parse, string, token_count
from legato.apis.jsonpath import Steps, compile_path, find
from legato.errors import UsageError
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
    TOOL,
    USAGE,
)

SUFFIXES = (".toml", ".json")

_FRAMINGS = ("sse", "ndjson")
_FIELDS = {
    "name": str,
    "path": str,
    "framing": str,
    "content_type": str,
    "end": str,
    "headers": dict,
    "body": dict,
    "read": dict,
}
# What may be read of an event, by a path into its JSON.
_READ = (
    "text",
    "reasoning",
    "tool",
    "tokens",
    "output_tokens",
    "prompt_tokens",
    "cached_tokens",
    "finish",
    "done",
    "error",
    "id",
)
_KINDS = (("text", CONTENT), ("reasoning", REASONING), ("tool", TOOL))
# Enough to read a recorded stream again; the body and the headers, which may hold a secret, stay
# in the user's file.
_KEPT = ("name", "path", "framing", "content_type", "end", "read")


def from_file(file: str) -> Api:
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read the API template {file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        kind = path.suffix.removeprefix(".").upper()
        raise UsageError(f"the API template {file} is not {kind}: {error}") from None
    try:
        if not isinstance(document, dict):
            raise ValueError("it must be an object")
        return from_document({"name": path.stem, **document}, requesting=True)
    except ValueError as error:
        raise UsageError(f"the API template {file} is wrong: {error}") from None


def from_document(document: Mapping[str, Any], *, requesting: bool = False) -> Api:
    """ValueError where the document is no template; without `requesting` it need only read."""
    _check(document, requesting)
    body, read = document.get("body", {}), document["read"]
    marker = document.get("end")
    uses_model = "{model}" in document["path"] or _mentions(body, "{model}") > 0
    content_type = document.get("content_type", "").partition(";")[0].strip().lower()
    return Api(
        name=document["name"],
        path=document["path"],
        body=_body(body),
        decode=_decoder(read, marker),
        names_model=uses_model,
        headers=_headers(document.get("headers", {})),
        ndjson=document.get("framing", "sse") == "ndjson",
        content_types=(content_type,) if content_type else (),
        end=_end_in_words(read, marker),
        document={name: document[name] for name in _KEPT if name in document},
    )


def _check(document: Mapping[str, Any], requesting: bool) -> None:
    for name, value in document.items():
        if name not in _FIELDS:
            raise ValueError(f"there is no field {name!r}; the fields are {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[name]):
            wanted = "a table" if _FIELDS[name] is dict else "a string"
            raise ValueError(f"{name!r} must be {wanted}")
    for name in ("path", "read", *(("body",) if requesting else ())):
        if name not in document:
            raise ValueError(f"it has no {name!r}")
    if not document["path"].startswith("/") or not document["path"].isascii():
        raise ValueError("'path' must start with '/' and be ASCII")
    if any(character in document["path"] for character in " \t\r\n\0"):
        raise ValueError("'path' must hold no white space")
    if document.get("framing", "sse") not in _FRAMINGS:
        raise ValueError(f"'framing' must be one of {', '.join(_FRAMINGS)}")
    if requesting:
        _check_body(document["body"])
    _check_headers({"Accept": document.get("content_type", "")})
    _check_headers(document.get("headers", {}))
    _check_read(document["read"])


def _check_body(body: dict[str, Any]) -> None:
    if (times := _mentions(body, "{prompt}")) != 1:
        raise ValueError(f"'{{prompt}}' must stand once in 'body', not {times} times")
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError):  # TOML has dates, and numbers that are none
        raise ValueError("'body' holds a value that JSON cannot") from None


def _check_headers(headers: Mapping[str, Any]) -> None:
    for name, value in headers.items():
        sound = isinstance(value, str) and (name + value).isascii() and name
        if not sound or any(character in name + value for character in "\r\n\0"):
            raise ValueError(f"the header {name!r} is none that HTTP can carry")


def _check_read(read: Mapping[str, Any]) -> None:
    for name, path in read.items():
        if name not in _READ:
            raise ValueError(f"'read' knows no {name!r}; it knows {', '.join(_READ)}")
        if not isinstance(path, str):
            raise ValueError(f"'read.{name}' must be a path such as 'choices[0].text'")
        compile_path(path)
    if not any(name in read for name, _ in _KINDS):
        raise ValueError("'read' says not where the text is")


# --- asking -----------------------------------------------------------------------------------


def _mentions(value: Any, placeholder: str) -> int:
    """How often the placeholder stands in the strings of a body."""
    if isinstance(value, str):
        return value.count(placeholder)
    if isinstance(value, dict):
        return sum(_mentions(item, placeholder) for item in value.values())
    return sum(_mentions(item, placeholder) for item in value) if isinstance(value, list) else 0


def _body(
    template: dict[str, Any],
) -> Callable[[str, str, int | None, Mapping[str, Any]], dict[str, Any]]:
    def body(
        model: str, prompt: str, output_tokens: int | None, extra: Mapping[str, Any]
    ) -> dict[str, Any]:
        filled = _filled(template, model, prompt, output_tokens)
        return merged({}, merged(filled, extra))

    return body


def _filled(value: Any, model: str, prompt: str, output_tokens: int | None) -> Any:
    """The placeholders replaced; a number that was not asked for is null, which removes it."""
    if isinstance(value, dict):
        return {k: _filled(v, model, prompt, output_tokens) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(item, model, prompt, output_tokens) for item in value]
    if value == "{output_tokens}":
        return output_tokens
    if isinstance(value, str):
        return value.replace("{model}", model).replace("{prompt}", prompt)
    return value


def _headers(template: Mapping[str, str]) -> Callable[[str | None], dict[str, str]]:
    def headers(key: str | None) -> dict[str, str]:
        if not any("{key}" in value for value in template.values()):
            return {**bearer(key), **template}
        if key is None:
            raise UsageError(
                "the API template's headers need a key: set LEGATO_API_KEY or give --api-key-file"
            )
        return {name: value.replace("{key}", key) for name, value in template.items()}

    return headers


# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reader:
    """The paths of a template, taken apart once."""

    paths: Mapping[str, Steps]

    def at(self, event: Any, name: str) -> Any:
        steps = self.paths.get(name)
        return None if steps is None else find(event, steps)

    def count(self, event: Any, name: str) -> int | None:
        return token_count(self.at(event, name))


def _decoder(read: Mapping[str, str], marker: str | None) -> Callable[[bytes], Chunk]:
    reader = _Reader({name: compile_path(path) for name, path in read.items()})
    end = None if marker is None else marker.encode()

    def decode(data: bytes) -> Chunk:
        if data.strip() == end:
            return Chunk(DONE, terminal=True)
        return _chunk(reader, parse(data))

    return decode


def _chunk(reader: _Reader, event: Any) -> Chunk:
    if error := reader.at(event, "error"):
        return Chunk(OTHER, error=error_message(error))
    chunk = Chunk(OTHER)
    for name, kind in _KINDS:
        if text := reader.at(event, name):
            chunk.kind, chunk.text, chunk.flags = kind, string(text), HAS_CHOICES
            break
    chunk.response_id = optional_string(reader.at(event, "id"))
    chunk.token_ids = _tokens(reader.at(event, "tokens"))
    chunk.output_tokens = reader.count(event, "output_tokens")
    chunk.prompt_tokens = reader.count(event, "prompt_tokens")
    chunk.cached_tokens = reader.count(event, "cached_tokens")
    chunk.terminal = bool(reader.at(event, "done"))
    _read_end(reader.at(event, "finish"), chunk)
    return chunk


def _read_end(finish: Any, chunk: Chunk) -> None:
    if chunk.output_tokens is not None:
        chunk.flags |= HAS_USAGE
    if finish or chunk.terminal:
        chunk.finish_reason = finish if isinstance(finish, str) else "stop"
        chunk.flags |= HAS_FINISH
    if chunk.kind == OTHER:
        chunk.kind = FINISH if chunk.finish_reason else USAGE if chunk.flags else OTHER
        chunk.flags |= 0 if chunk.flags else EMPTY


def _tokens(value: Any) -> int | None:
    """A number of tokens, or a list of them."""
    return len(value) if isinstance(value, list) else token_count(value)


def _end_in_words(read: Mapping[str, str], marker: str | None) -> str | None:
    signs = [read[name] for name in ("finish", "done") if name in read]
    return " or ".join([*([marker] if marker else []), *signs]) or None
