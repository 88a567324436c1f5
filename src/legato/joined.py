"""Several recordings as one: what can be said of all of them, and each one's own words kept.

Gaps of different runs pool; the load, the clock and the verdict do not. So the joined metadata
holds only what adds up, and `parts` holds each recording's metadata with its number of streams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PARTS = "parts"
ROWS = "rows"


def parts_of(meta: Mapping[str, Any], rows: int) -> list[dict[str, Any]]:
    """The metadata of the recordings in one recording, each with its `rows`."""
    return list(meta.get(PARTS) or [{**meta, ROWS: rows}])


def combined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Metadata for all `parts` together."""
    meta: dict[str, Any] = {
        "partial": any(part.get("partial") for part in parts),
        "settings": _shared([part.get("settings") or {} for part in parts]),
        "host": _shared([part.get("host") or {} for part in parts]),
        "versions": _shared([part.get("versions") or {} for part in parts]),
        "calibration": _worst_floor([part.get("calibration") for part in parts]),
        "clock": _clock([part.get("clock") or {} for part in parts]),
        "load": _load([part.get("load") or {} for part in parts]),
        PARTS: list(parts),
    }
    return meta


def _shared(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all say alike; what they disagree on is None, and named under `differs`."""
    names = {name: None for document in documents for name in document}
    values = {name: [document.get(name) for document in documents] for name in names}
    alike = {name: all(v == found[0] for v in found) for name, found in values.items()}
    shared = {name: values[name][0] if alike[name] else None for name in names}
    differs = [name for name in names if not alike[name]]
    return {**shared, "differs": differs} if differs else shared


def _worst_floor(profiles: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    if not profiles or not all(profiles):
        return None
    worst = max(profiles, key=lambda profile: (profile or {}).get("floor_us", {}).get("p99") or 0.0)
    return dict(worst or {})


def _clock(clocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "anchor_width_ns": max((clock.get("anchor_width_ns") or 0 for clock in clocks), default=0),
        "steps": sum(clock.get("steps") or 0 for clock in clocks),
    }


def _load(loads: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    spans = [
        (load["started_ns"], load["ended_ns"])
        for load in loads
        if load.get("started_ns") is not None and load.get("ended_ns") is not None
    ]
    shares = [load["cpu_share"] for load in loads if load.get("cpu_share") is not None]
    return {
        "started_ns": min((start for start, _ in spans), default=None),
        "ended_ns": max((end for _, end in spans), default=None),
        "busy_ns": _covered_ns(spans) if len(spans) == len(loads) else None,
        "drain_ns": None,
        "cpu_share": max(shares, default=None),
        **{
            name: sum(load.get(name) or 0 for load in loads)
            for name in ("lost_streams", "workers_lost", "retried", "cpu_ns")
        },
    }


def _covered_ns(spans: Sequence[tuple[int, int]]) -> int:
    """How long at least one of them lasted: runs of a fleet overlap, runs of a day do not."""
    covered, until = 0, 0
    for start, end in sorted(spans):
        covered += max(0, end - max(start, until))
        until = max(until, end)
    return covered
