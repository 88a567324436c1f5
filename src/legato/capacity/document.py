"""The answer of a capacity search as one JSON-ready dictionary, and what it means for money."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legato.capacity.pressure import Judged, worst
from legato.capacity.search import Answer
from legato.slo import Slo
from legato.traffic.level import By, LevelRun

CAPACITY_SCHEMA = 1
TOKENS_PRICED = 1_000_000
_SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of the search or at a multiple of the peak, and how each condition fared in it."""

    run: LevelRun
    judged: tuple[Judged, ...]

    @property
    def passes(self) -> bool:
        return worst(self.judged).pressure <= 0

    @property
    def held(self) -> bool:
        """Whether the client held the load, so that the run speaks of the target. Where many
        requests failed it is the target that kept the load from being reached."""
        streams = self.run.summary["streams"]
        return self.run.verdict != "invalid" or streams["ok"] < 0.98 * streams["total"]

    def describe(self) -> dict[str, Any]:
        run = self.run
        return {
            run.level.by: run.level.value,
            "recording": str(run.out),
            "verdict": run.verdict,
            "reasons": run.reasons,
            "holds": self.passes,
            "conditions": [one.describe() for one in self.judged],
            "streams": run.summary["streams"],
            "itl_ms": run.summary["itl_ms"],
            "ttft_ms": run.summary["ttft_ms"],
            "tps": {name: run.summary["tps"][name] for name in ("stream", "system")},
            "steady": run.steady,
        }


@dataclass(frozen=True, slots=True)
class Found:
    """Everything a capacity search came to."""

    by: By
    slo: Slo
    answer: Answer
    trials: Sequence[Trial]
    peak: Sequence[Trial]
    cost_per_hour: float | None

    @property
    def is_bound(self) -> bool:
        """The limit lies at or above the level given, and how far is not known."""
        return bool(self.answer.level) and math.isinf(self.answer.high)

    @property
    def tokens_per_s(self) -> float | None:
        """Of the whole system at the answer, read between the levels that were run."""
        rates: dict[float, list[float]] = {}
        for trial in self.trials:
            rate = trial.run.summary["tps"]["system"]
            if rate is not None and trial.held:
                rates.setdefault(trial.run.level.value, []).append(rate)
        if not rates or not self.answer.level:
            return None
        levels = sorted(rates)
        means = [float(np.mean(rates[level])) for level in levels]
        return float(np.interp(self.answer.level, levels, means))

    @property
    def cost_per_million_tokens(self) -> float | None:
        rate = self.tokens_per_s
        if self.cost_per_hour is None or not rate:
            return None
        return self.cost_per_hour / (rate * _SECONDS_AN_HOUR) * TOKENS_PRICED

    @property
    def binding(self) -> str | None:
        """The condition that decides: the worst one of the lowest level that failed."""
        failed = [trial for trial in self.trials if not trial.passes]
        if not failed:
            return None
        lowest = min(failed, key=lambda trial: trial.run.level.value)
        return str(worst(lowest.judged).condition)


def describe(found: Found) -> dict[str, Any]:
    answer = found.answer
    high = None if math.isinf(answer.high) else answer.high
    return {
        "schema": CAPACITY_SCHEMA,
        "capacity": {
            found.by: _plain(answer.level, found.by),
            "ci95": [
                _plain(answer.low, found.by),
                None if high is None else _plain(high, found.by),
            ],
            "runs": len(answer.runs),
        },
        "ending": answer.ending,
        "lower_bound": found.is_bound,
        "slo": {
            "text": found.slo.text,
            "profile": found.slo.profile,
            "conditions": [str(one.condition) for one in found.trials[0].judged]
            if found.trials
            else [],
        },
        "binding": found.binding,
        "tokens_per_s": found.tokens_per_s,
        "cost_per_hour": found.cost_per_hour,
        "cost_per_million_tokens": found.cost_per_million_tokens,
        "levels": [trial.describe() for trial in found.trials],
        "peak": [trial.describe() for trial in found.peak],
    }


def _plain(level: float, by: By) -> float | int:
    return int(level) if by == "concurrency" else level
