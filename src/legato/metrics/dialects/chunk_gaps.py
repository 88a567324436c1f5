"""Tools whose ITL is the gaps between chunks, of all requests together.

A chunk of several tokens gives them one sample, so their ITL grows with tokens per chunk.
"""

from __future__ import annotations

import numpy as np

from legato.metrics.dialects.reading import Reading, per_second, reading
from legato.metrics.dialects.statistics import Samples, nearest_rank, table_ms, tables_ms
from legato.metrics.dialects.tally import (
    Tally,
    encoded_whole,
    first_known,
    recorded,
    requested_or,
    usage_or,
)
from legato.metrics.dialects.view import MISSING, Bools, Run, View, span_ns
from legato.recording import Ints

NO_LENGTH = "no usage and no requested length: tokens as recorded"


def vllm(run: Run) -> Reading:
    """vLLM `bench serve`: every chunk with choices is a sample, role-only and finish ones too."""
    view = run.ok
    counted = (view.choices.count > 0) | ~view.is_completions
    first_ns = np.maximum(view.choices.first_ns, 0)
    # A chat answer ends with its last JSON chunk, so a late usage chunk lengthens it.
    end_ns = np.where(view.is_completions, view.choices.last_ns, view.objects.last_ns)
    # Usage is read only from a chunk without choices.
    known = np.where(view.usage_only.count > 0, view.usage_tokens, MISSING)
    tally = first_known(known, encoded_whole(view.content))
    samples = {
        "itl_ms": view.choices.gaps_ns,
        "tpot_ms": _after_first(end_ns, first_ns, tally.tokens, counted),
        "ttft_ms": first_ns[counted],
    }
    return reading(
        tables_ms(samples, (50, 99), "mean"),
        why=tally.why,
        output_tps=per_second(tally.tokens[counted], run.wall_ns),
    )


def sglang(run: Run) -> Reading:
    """SGLang `bench_serving` over the OpenAI API: chunks with text; E2E to the last line."""
    view = run.ok
    first_ns = np.maximum(view.text.first_ns, 0)
    without_usage = view.pick(view.has_choices | ~view.has_usage)
    end_ns = np.where(view.is_completions, without_usage.last_ns, view.lines.last_ns)
    tally = _sglang_tokens(view)
    percentiles = (50, 90, 95, 99)
    samples = {
        "tpot_ms": _after_first(end_ns, first_ns, tally.tokens),
        "ttft_ms": first_ns,
        "e2e_ms": end_ns,
    }
    tables = {"itl_ms": table_ms(view.text.sorted_gaps_ns, percentiles, "mean", "max")}
    return reading(
        tables | tables_ms(samples, percentiles, "mean"),
        why=tally.why,
        output_tps=per_second(tally.tokens, run.wall_ns),
    )


def _sglang_tokens(view: View) -> Tally:
    """Usage; else the length that was asked for, whatever came back."""
    on_text = view.text.stream[view.has_riding_usage[view.text.index]]
    rides_on_text = np.bincount(on_text, minlength=len(view)) > 0
    # The text-completion client reads usage only where it comes with text.
    known = np.where(view.is_completions & ~rides_on_text, MISSING, view.usage_tokens)
    return first_known(known, requested_or(view, recorded(view, NO_LENGTH)))


def evalscope(run: Run) -> Reading:
    """EvalScope `perf`: chunks with text, reasoning or a tool call; nearest-rank percentiles."""
    view = run.ok
    first_ns = np.maximum(view.output.first_ns, 0)
    end_ns = view.objects.last_ns
    tally = usage_or(view, encoded_whole(view.text))
    samples = {
        "itl_ms": view.output.sorted_gaps_ns,
        "tpot_ms": _after_first(end_ns, first_ns, tally.tokens),
        "ttft_ms": first_ns,
        "e2e_ms": end_ns,
    }
    percentiles = (1, 5, 10, 25, 50, 75, 90, 95, 99)
    return reading(
        tables_ms(samples, percentiles, "mean", "min", "max", rule=nearest_rank),
        why=tally.why,
        output_tps=per_second(tally.tokens, span_ns(view, end_ns)),
    )


def servebench(run: Run) -> Reading:
    """servebench: text chunks stamped in whole µs; a stream needs [DONE] or a finish reason."""
    view = run.ok
    finished = np.bincount(view.stream, weights=view.has_finish, minlength=len(view)) > 0
    counted = (view.text.count > 0) & (finished | (view.done.count > 0))
    first_ns = _whole_us(view.text.first_ns)
    end_ns = np.where(view.done.count > 0, view.done.first_ns, view.ended_ns)
    # Its tokenizer is an option; without one, a chunk is a token.
    tokens = usage_or(view, Tally(view.text.count)).tokens
    within = (view.text.stream[1:] == view.text.stream[:-1]) & counted[view.text.stream[1:]]
    gaps_ns = np.diff(_whole_us(view.text.at_ns))[within]
    tpot_ns = _after_first(end_ns, first_ns, tokens, counted)
    tables = {
        "itl_ms": table_ms(gaps_ns, (50, 90, 99), "mean", "max"),
        **tables_ms({"tpot_ms": tpot_ns, "ttft_ms": first_ns[counted]}, (50, 99)),
        "e2e_ms": table_ms(end_ns[counted], (50,)),
    }
    return reading(tables, output_tps=per_second(tokens[counted], run.wall_ns))


def _whole_us(at_ns: Ints) -> Ints:
    return np.rint(at_ns / 1000).astype(np.int64) * 1000


def _after_first(
    end_ns: Ints, first_ns: Ints, tokens: Ints, counted: Bools | None = None
) -> Samples:
    """(E2E − TTFT) / (N − 1) of the streams with two tokens or more."""
    where = tokens > 1 if counted is None else counted & (tokens > 1)
    return np.asarray((end_ns - first_ns)[where] / (tokens[where] - 1))
