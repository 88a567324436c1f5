"""What the request bodies of all APIs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`extra` laid over `body`: objects are merged, a null removes a field (RFC 7396)."""
    result = dict(body)
    for name, value in extra.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            under = result.get(name)
            result[name] = merged(under if isinstance(under, Mapping) else {}, value)
        else:
            result[name] = value
    return result


def user_says(prompt: str) -> list[dict[str, str]]:
    """A conversation of one message."""
    return [{"role": "user", "content": prompt}]
