"""One distribution as the summary prints it: milliseconds, and null where unknown."""

from __future__ import annotations

from typing import Any

from legato.metrics import samples as sample
from legato.metrics.intervals import Interval, quantile_intervals
from legato.metrics.samples import NS_PER_MS, Samples

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
WITH_INTERVAL = ("p50", "p90", "p99")


def describe(samples: Samples) -> dict[str, Any]:
    """`{n, mean, std, p50, p90, p95, p99, p999, max, ci95}` in ms."""
    shown = {name: sample.supported(samples, p) for name, p in QUANTILES.items()}
    figures: dict[str, Any] = {
        "n": samples.n,
        "mean": in_ms(sample.mean(samples)),
        "std": in_ms(sample.std(samples)),
    }
    for name, p in QUANTILES.items():
        figures[name] = in_ms(sample.quantile(samples, p)) if shown[name] else None
    figures["max"] = in_ms(float(samples.value_ns[-1])) if len(samples) else None
    asked = [name for name in WITH_INTERVAL if shown[name]]
    found = quantile_intervals(samples, [QUANTILES[name] for name in asked])
    intervals = dict(zip(asked, found, strict=True))
    figures["ci95"] = {name: _pair_ms(intervals.get(name)) for name in WITH_INTERVAL}
    return figures


def in_ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / NS_PER_MS


def _pair_ms(interval: Interval | None) -> list[float] | None:
    if interval is None:
        return None
    return [interval.low_ns / NS_PER_MS, interval.high_ns / NS_PER_MS]
