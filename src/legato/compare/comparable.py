"""Whether recordings may be compared at all: what must be alike, and what is only worth saying.

ITL grows with context and counts tokens, so a comparison across other lengths or another way of
counting answers a question nobody asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legato.metrics.summary import measure, summarise
from legato.recording import Ints, Recording
from legato.report.figures import of, significant

LENGTH_TOLERANCE = 0.10  # of the mean length; answers that end by themselves vary by less


@dataclass(frozen=True, slots=True)
class Facts:
    """What comparability rests on; none where a recording does not tell."""

    name: str
    api: str | None
    token_source: str | None
    prompt_tokens: float | None  # mean
    output_tokens: float | None  # mean of whole answers
    clock: str | None
    verdict: str
    reasons: tuple[str, ...]
    ok: int
    partial: bool
    load: str
    cache_friendly: bool | None
    where: str


def facts(name: str, recording: Recording) -> Facts:
    summary = summarise(recording)
    settings: dict[str, Any] = summary["run"]["settings"]
    measured = measure(recording)
    whole = measured.ok[measured.times.stream]
    prompts = recording.ints("prompt_tokens")[measured.streams]
    apis = sorted(set(recording.strings("api")[measured.streams]))
    return Facts(
        name=name,
        api=settings.get("api") or ("+".join(apis) or None),
        token_source=summary["tokens"]["source"],
        prompt_tokens=_mean(prompts[prompts >= 0]) or settings.get("prompt_tokens"),
        output_tokens=_mean(measured.times.tokens[whole]),
        clock=summary["instrument"]["clock"],
        verdict=summary["instrument"]["verdict"],
        reasons=tuple(summary["instrument"]["reasons"]),
        ok=summary["streams"]["ok"],
        partial=summary["run"]["partial"],
        load=_load(settings),
        cache_friendly=settings.get("cache_friendly"),
        where=" · ".join(str(settings[key]) for key in ("url", "model") if settings.get(key)),
    )


def objections(baseline: Facts, other: Facts) -> list[str]:
    """Why the two must not be compared; empty when they may."""
    pair = f"{baseline.name} and {other.name}"
    found = [
        f"{pair} differ in {what}: {one} and {two}"
        for what, one, two in (
            ("API", baseline.api, other.api),
            ("how tokens were counted", baseline.token_source, other.token_source),
            ("the clock of arrivals", baseline.clock, other.clock),
        )
        if one is not None and two is not None and one != two
    ]
    for what, one_long, two_long in (
        ("prompt length", baseline.prompt_tokens, other.prompt_tokens),
        ("answer length", baseline.output_tokens, other.output_tokens),
    ):
        if one_long and two_long and abs(two_long / one_long - 1) > LENGTH_TOLERANCE:
            found.append(
                f"{pair} differ in {what}: {significant(one_long)} and {significant(two_long)}"
                f" tokens on average (tolerance {LENGTH_TOLERANCE:.0%})"
            )
    return found


def invalid(runs: Sequence[Facts]) -> list[str]:
    """Runs that are no measurement, each with its first reason."""
    return [
        f"{run.name} is invalid as a measurement: {run.reasons[0]}"
        for run in runs
        if run.verdict == "invalid"
    ]


def remarks(runs: Sequence[Facts]) -> list[str]:
    """What the reader should know though it does not forbid the comparison."""
    found = []
    if len({run.load for run in runs}) > 1:
        loads = "; ".join(f"{run.name}: {run.load}" for run in runs)
        found.append(f"the load was not the same ({loads})")
    if len({run.cache_friendly for run in runs} - {None}) > 1:
        found.append("prompts were salted against prefix caches in some runs and not in others")
    if partial := [run.name for run in runs if run.partial]:
        found.append(f"{_names(partial)} stopped early")
    found += [
        f"{run.name} is degraded as a measurement: {run.reasons[0]}"
        for run in runs
        if run.verdict == "degraded"
    ]
    return found


def _load(settings: dict[str, Any]) -> str:
    if settings.get("rate"):
        return f"{settings['rate']:g} requests/s"
    if settings.get("concurrency"):
        return f"{of(settings['concurrency'], 'stream')} open"
    return "unknown load"


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _mean(values: Ints) -> float | None:
    return float(np.mean(values)) if len(values) else None
