"""An SLO held against a run: each condition by the run's figures, and the requests a second that
met all of them by their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from legato.expressions import Condition, evaluate, streams_meeting
from legato.metrics import steady
from legato.recording import Recording


def goodput(
    recording: Recording, conditions: Sequence[Condition], summary: Mapping[str, Any]
) -> dict[str, Any]:
    """The summary's `goodput`; the rate is over the steady window, the share over all requests
    that count."""
    met = streams_meeting(conditions, recording)
    counted = recording.strings("phase") != "warmup"
    asked = int(np.count_nonzero(counted))
    rates = steady.rates(recording, steady.trim(recording).window, met)
    found = {
        "requests_per_s": rates["goodput_per_s"],
        "share": float(np.count_nonzero(met & counted)) / asked if asked else None,
    }
    outcomes = evaluate(conditions, {**summary, "goodput": found})
    return found | {
        "conditions": [
            {"condition": str(o.condition), "verdict": o.verdict, "value": o.value}
            for o in outcomes
        ]
    }
