"""The attribution as one JSON-ready dictionary; the terminal shows the same values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from legato.explain import words
from legato.explain.attribution import Attribution
from legato.explain.part import CONTEXT, IN_FLIGHT, POSITION, STARTS, STEP, Part

EXPLAIN_SCHEMA = 1
NS_PER_MS = 1e6

# What one unit of a cause is, where it has one.
UNITS = {
    STEP: "chunk",
    POSITION: "token of position",
    CONTEXT: "token of context",
    IN_FLIGHT: "other open stream",
    STARTS: "start of another stream",
}


def document(found: Attribution, recordings: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "schema": EXPLAIN_SCHEMA,
        "recording": list(recordings),
        "streams": found.streams,
        "gaps": found.gaps,
        "mean_ms": found.mean_ns / NS_PER_MS,
        "causes": [_cause(part, found) for part in found.parts],
        "tail": _tail(found),
        "held_back_ms": found.facts.held_ns / NS_PER_MS,
        "advice": words.advice(found),
    }


def _cause(part: Part, found: Attribution) -> dict[str, Any]:
    known = part.mean_ns is not None
    return {
        "cause": part.cause,
        "title": words.title(part, found),
        "ms": part.mean_ns / NS_PER_MS if part.mean_ns is not None else None,
        "ci95": _interval_ms(part.interval_ns),
        "share": part.mean_ns / found.mean_ns if part.mean_ns is not None else None,
        "tail_share": part.tail_share if known else None,
        "effect": _effect(part),
        "sentence": words.sentence(part, found),
    }


def _effect(part: Part) -> dict[str, Any] | None:
    """What one unit of the cause costs, with the interval of the cause scaled to it."""
    effect_ns, interval_ns = part.effect_ns, part.interval_ns
    if effect_ns is None or part.units is None or part.cause not in UNITS:
        return None
    ends = None if interval_ns is None else tuple(end / part.units for end in interval_ns)
    return {
        "per": UNITS[part.cause],
        "ms": effect_ns / NS_PER_MS,
        "ci95": None if ends is None else _interval_ms((ends[0], ends[1])),
    }


def _tail(found: Attribution) -> dict[str, Any] | None:
    slowest = found.tail
    if slowest is None:
        return None
    return {
        "gaps": slowest.gaps,
        "from_ms": slowest.from_ns / NS_PER_MS,
        "mean_ms": slowest.mean_ns / NS_PER_MS,
    }


def _interval_ms(ends_ns: tuple[float, float] | None) -> list[float] | None:
    return None if ends_ns is None else [end / NS_PER_MS for end in ends_ns]
