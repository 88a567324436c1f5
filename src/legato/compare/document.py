"""A comparison as one JSON object; times in ms, shares of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from legato.compare import words
from legato.compare.change import Change
from legato.compare.comparable import Facts
from legato.compare.comparison import Comparison, Ranked
from legato.compare.gate import Gate
from legato.compare.span import Span

SCHEMA = 1


def document(
    comparisons: Sequence[Comparison],
    facts: dict[str, list[Facts]],
    gates: Sequence[Gate],
    remarks: Sequence[str],
    *,
    objections: Sequence[str],
) -> dict[str, Any]:
    """`objections` are those that `--force` overruled."""
    return {
        "schema": SCHEMA,
        "sides": {letter: [asdict(run) for run in runs] for letter, runs in facts.items()},
        "comparisons": [_comparison(comparison) for comparison in comparisons],
        "gates": [_gate(gate) for gate in gates],
        "passed": all(gate.passed for gate in gates),
        "forced": list(objections),
        "remarks": list(remarks),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    primary = comparison.primary
    return {
        "baseline": comparison.baseline.letter,
        "candidate": comparison.candidate.letter,
        "verdict": words.verdict(comparison),
        "sentence": words.headline(comparison),
        "primary": str(primary.figure) if primary else None,
        "unit": primary.basis if primary else None,
        "between_run_variance_known": primary is not None and primary.basis != "streams",
        "notes": words.notes(comparison),
        "figures": {str(change.figure): _change(change) for change in comparison.changes},
        "rank_test": _ranked(comparison.ranked) if comparison.ranked else None,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "unit": "share" if change.figure.is_share else "ms" if change.figure.is_time else "1/s",
        "a": change.a,
        "b": change.b,
        "difference": _span(change.difference),
        "ratio": _span(change.ratio) if change.ratio else None,
        "p": change.p,
        "p_holm": change.p_holm,
        "different": change.shown,
    }


def _span(span: Span) -> dict[str, Any]:
    return {"value": span.value, "ci95": [span.low, span.high] if span.known else None}


def _ranked(ranked: Ranked) -> dict[str, Any]:
    size = ranked.effect
    return {
        "figure": str(ranked.figure),
        "unit": ranked.unit,
        "n": list(ranked.n),
        "p": ranked.test.p,
        "method": ranked.test.method,
        "cliffs_delta": {
            "value": size.delta,
            "ci95": None if size.low is None else [size.low, size.high],
            "size": size.size,
        },
        "hodges_lehmann_shift": size.shift,
    }


def _gate(gate: Gate) -> dict[str, Any]:
    return {
        "text": gate.text,
        "candidate": gate.candidate,
        "passed": gate.passed,
        "conditions": [
            {
                "condition": str(one.condition),
                "value": one.value if one.value is None or math.isfinite(one.value) else None,
                "verdict": one.verdict,
            }
            for one in gate.judged
        ],
    }
