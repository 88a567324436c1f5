"""A sweep: the same load at rising levels, what each showed, and where the knee is.

Levels are kept whatever their verdict; only those that are measurements decide the knee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from legato.errors import UsageError
from legato.metrics import steady
from legato.traffic.arrivals import MAX_RATE
from legato.traffic.level import By, Level, LevelRun

SWEEP_SCHEMA = 1
KNEE_RULE = (
    "the level of the greatest power (Kleinrock): tokens a second of the whole system ÷ median ITL"
)
DEFAULT_LEVELS = "1,2,4,8,16,32"
MOST_LEVELS = 100


def parse_levels(concurrency: str | None, rate: str | None) -> list[Level]:
    """The levels asked for, in rising order."""
    if concurrency is not None and rate is not None:
        raise UsageError("--concurrency and --rate contradict each other: choose one")
    by: By = "rate" if rate is not None else "concurrency"
    text = rate if rate is not None else concurrency if concurrency is not None else DEFAULT_LEVELS
    values = sorted({_value(part, by, text) for part in text.split(",")})
    if len(values) > MOST_LEVELS:
        raise UsageError(f"--{by} names {len(values)} levels; at most {MOST_LEVELS} are run")
    return [Level(by, value) for value in values]


def _value(part: str, by: By, text: str) -> float:
    try:
        value = float(int(part)) if by == "concurrency" else float(part)
    except ValueError:
        value = 0.0
    if not 0 < value <= MAX_RATE:
        what = "whole numbers" if by == "concurrency" else "numbers"
        raise UsageError(
            f"--{by} {text}: {part.strip()!r} must be greater than 0; write {what} with commas,"
            " such as 1,2,4,8"
        )
    return value


def power(run: LevelRun) -> float | None:
    """Throughput ÷ delay; none where either is not known."""
    tokens_per_s, itl_ms = run.summary["tps"]["system"], run.summary["itl_ms"]["p50"]
    if tokens_per_s is None or not itl_ms:
        return None
    return float(tokens_per_s / itl_ms)


def knee(runs: Sequence[LevelRun]) -> dict[str, Any] | None:
    """The level past which delay grows faster than throughput; `at_end` where that is the
    highest level run, so that the knee may lie beyond it."""
    usable = [run for run in runs if run.verdict in ("valid", "degraded") and not run.interrupted]
    powers = [(found, run) for run in usable if (found := power(run)) is not None]
    if len(powers) < 2:
        return None
    _, best = max(powers, key=lambda pair: pair[0])
    return {
        best.level.by: best.level.value,
        "at_end": best is usable[-1],
        "rule": KNEE_RULE,
    }


def describe(runs: Sequence[LevelRun], slo: str | None) -> dict[str, Any]:
    """The sweep as JSON."""
    return {
        "schema": SWEEP_SCHEMA,
        "by": runs[0].level.by if runs else None,
        "slo": slo,
        "trimming": steady.RULE,
        "knee": knee(runs),
        "levels": [_row(run) for run in runs],
    }


def _row(run: LevelRun) -> dict[str, Any]:
    summary = run.summary
    return {
        run.level.by: run.level.value,
        "recording": str(run.out),
        "verdict": run.verdict,
        "reasons": run.reasons,
        "partial": run.interrupted,
        "streams": summary["streams"],
        "itl_ms": summary["itl_ms"],
        "ttft_ms": summary["ttft_ms"],
        "tps": {"stream": summary["tps"]["stream"], "system": summary["tps"]["system"]},
        "requests_per_s": summary["requests_per_s"],
        "goodput": summary["goodput"],
        "power": power(run),
        "steady": run.steady,
        "trimmed": {"streams": run.trimmed["streams"], "window_s": run.trimmed["window_s"]},
    }
