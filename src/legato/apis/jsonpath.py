"""Paths into JSON such as `choices[0].delta.content`: names and indices, nothing else."""

from __future__ import annotations

import re
from typing import Any

Steps = tuple[str | int, ...]

_STEP = re.compile(
    r"\.?(?P<name>[^.\[\]]+)|\[(?P<index>-?\d+)\]|\[(?P<quote>['\"])(?P<key>.*?)(?P=quote)\]"
)


def compile_path(path: str) -> Steps:
    """The steps of a path, with or without the `$` in front; ValueError where it is none."""
    rest = path.removeprefix("$").strip()
    steps: list[str | int] = []
    position = 0
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None:
            raise ValueError(f"{path!r} is not a path such as 'choices[0].text'")
        if match["index"] is not None:
            steps.append(int(match["index"]))
        else:
            steps.append(match["name"] if match["name"] is not None else match["key"])
        position = match.end()
    if not steps:
        raise ValueError(f"{path!r} is not a path such as 'choices[0].text'")
    return tuple(steps)


def find(value: Any, steps: Steps) -> Any:
    """What is there, or None."""
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return None
            value = value[step]
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value
