"""Text as a terminal can show it: what a server or a file name holds never reaches it raw."""

from __future__ import annotations

import re

_SPELLED = str.maketrans(
    {
        "–": "-",
        "−": "-",
        "≈": "~",
        "±": "+-",
        "µ": "u",
        "·": "|",
        "×": "x",
        "•": "*",
        "█": "#",
        "░": ".",
    }
)
_CONTROL = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def legible(text: str, encoding: str) -> str:
    """`text` in what this encoding has: the rest is spelled in ASCII, and control characters,
    which could move the cursor or rename the window, become question marks."""
    text = _CONTROL.sub("?", text)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_SPELLED).encode(encoding, "replace").decode(encoding)
    return text


def sentence(text: str, encoding: str) -> str:
    """`text` as one legible line."""
    return legible(" ".join(text.splitlines()), encoding)
