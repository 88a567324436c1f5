"""The API key: read from the environment or a file, carried in a value that never shows itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from legato.errors import UsageError

_SHORTEST_SECRET = 8  # cutting anything shorter out of sentences would hide no secret
VARIABLES = ("LEGATO_API_KEY", "OPENAI_API_KEY")


class Key:
    """A secret. Its text is only to be had by `reveal`; printed or formatted it is `[key]`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "[key]"


def find(file: str | None, environment: Mapping[str, str] = os.environ) -> Key | None:
    """From `file` where one is named, else from the environment."""
    if file is not None:
        try:
            text = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise UsageError(f"cannot read the key file {file}: {reason}") from None
        if not text:
            raise UsageError(f"the key file {file} is empty")
    else:
        text = next((environment[name] for name in VARIABLES if environment.get(name)), "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError("the API key holds a character that no HTTP header can carry")
    return Key(text)


def secrets(key: Key | None, headers: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be repeated in a recording, whatever a server echoes: the key, and the
    values of the user's own headers, which may be one (`api-key: …`), whole and word by word
    (`Authorization: Bearer …`). Longest first, so that no part is left standing."""
    found = {key.reveal()} if key is not None else set()
    for value in headers.values():
        found |= {part for part in (value, *value.split()) if len(part) >= _SHORTEST_SECRET}
    return tuple(sorted(found, key=len, reverse=True))
