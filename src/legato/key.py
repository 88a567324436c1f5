"""The API key: read from the environment or a file, carried in a value that never shows itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from legato.errors import UsageError

_SHORTEST_SECRET = 8  # cutting anything shorter out of sentences would hide no secret
_OWN_VARIABLE = "LEGATO_API_KEY"
_VENDOR_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY"}  # by API; the others speak OpenAI's


class Key:
    """A secret. Its text is only to be had by `reveal`; printed or formatted it is `[key]`.
    `source` names the option or variable that held it."""

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self.source = source

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "[key]"


def find(file: str | None, api: str, environment: Mapping[str, str] = os.environ) -> Key | None:
    """From `file` where one is named, else from the environment: legato's own variable, or the
    one of the API's vendor, so that no vendor is sent another's key."""
    source = "--api-key-file"
    if file is not None:
        try:
            text = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise UsageError(f"cannot read the key file {file}: {reason}") from None
        if not text:
            raise UsageError(f"the key file {file} is empty")
    else:
        names = (_OWN_VARIABLE, _VENDOR_VARIABLES.get(api, "OPENAI_API_KEY"))
        source = next((name for name in names if environment.get(name)), "")
        text = environment.get(source, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError("the API key holds a character that no HTTP header can carry")
    return Key(text, source)


def secrets(key: Key | None, headers: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be repeated in a recording, whatever a server echoes: the key, and the
    values of the user's own headers, which may be one (`api-key: …`), whole and word by word
    (`Authorization: Bearer …`). Longest first, so that no part is left standing."""
    found = {key.reveal()} if key is not None else set()
    for value in headers.values():
        found |= {part for part in (value, *value.split()) if len(part) >= _SHORTEST_SECRET}
    return tuple(sorted(found, key=len, reverse=True))
