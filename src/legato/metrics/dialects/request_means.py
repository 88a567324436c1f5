"""Tools that print one mean a request, so that percentiles are over requests.

A stall inside a request is divided by its tokens: their tail says little of single gaps.
"""

from __future__ import annotations

import numpy as np

from legato.metrics.dialects.reading import Reading, per_second, reading
from legato.metrics.dialects.statistics import (
    lower,
    product_index,
    tables_ms,
    weighted_table_ms,
)
from legato.metrics.dialects.tally import (
    PIECEWISE,
    Tally,
    encoded_pieces,
    encoded_whole,
    first_known,
    is_additive,
    recorded,
    requested_or,
    usage_or,
)
from legato.metrics.dialects.view import MISSING, Run, View, span_ns
from legato.recording import CONTENT, DONE, Ints

SHORTEST_DECODE_NS = 1_000_000
NO_COUNT = "the server gave no token count: tokens as recorded"
TEMPLATE = "reasoning and tool calls: the tool renders them by a chat template first"


def aiperf(run: Run) -> Reading:
    """AIPerf: first to last chunk with output, over the tokens of the text encoded again."""
    view = run.ok
    tally = encoded_whole(view.output)
    counted = view.output.count > 0
    decoding = counted & (tally.tokens > 1)
    decode_ns = (view.output.last_ns - view.output.first_ns)[decoding]
    samples = {
        "itl_ms": decode_ns / (tally.tokens[decoding] - 1),
        "ttft_ms": view.output.first_ns[counted],
        "e2e_ms": view.output.last_ns[counted],
    }
    span = span_ns(view, np.maximum(view.output.last_ns, 0))
    return reading(
        tables_ms(samples, (50, 90, 99), "mean", "min", "max", "std"),
        why=tally.why,
        output_tps=per_second(tally.tokens[counted], span),
    )


def genai_perf(run: Run) -> Reading:
    """genai-perf: content chunks; ITL rounded to whole ns, for answers of two chunks or more."""
    view = run.ok
    tally = encoded_whole(view.content)
    counted = view.content.count > 0
    decoding = (view.content.count > 1) & (tally.tokens > 1)
    decode_ns = (view.content.last_ns - view.content.first_ns)[decoding]
    samples = {
        "itl_ms": np.rint(decode_ns / (tally.tokens[decoding] - 1)),
        "ttft_ms": view.content.first_ns[counted],
        "e2e_ms": view.content.last_ns[counted],
    }
    span = span_ns(view, np.maximum(view.content.last_ns, 0))
    return reading(
        tables_ms(samples, (75, 90, 99), "mean", "min", "max"),
        why=tally.why,
        output_tps=per_second(tally.tokens[counted], span),
    )


def guidellm(run: Run) -> Reading:
    """GuideLLM: requests weighted by their tokens; TPOT includes the first token."""
    view = run.ok
    counted = view.output.count > 0
    # Without usage it believes the requested length; without that, a chunk is a token.
    tally = usage_or(view, requested_or(view, Tally(view.output.count)))
    tokens = tally.tokens[counted]
    first_ns, last_ns = view.output.first_ns[counted], view.output.last_ns[counted]
    end_ns = np.where(view.done.count > 0, view.done.first_ns, view.ended_ns)[counted]
    gaps = np.maximum(tokens - 1, 0)
    itl_ns = (last_ns - first_ns) / np.maximum(gaps, 1)
    series = {
        "itl_ms": (itl_ns, gaps),
        "tpot_ms": (last_ns / tokens, tokens),
        "ttft_ms": (first_ns, np.ones(len(tokens))),
        "e2e_ms": (end_ns, np.ones(len(tokens))),
    }
    tables = {name: weighted_table_ms(*pair, (50, 95)) for name, pair in series.items()}
    return reading(tables, output_tps=per_second(tokens, run.wall_ns))


def genai_bench(run: Run) -> Reading:
    """genai-bench: no ITL; TPOT to the usage chunk, dropped where decoding took under 1 ms."""
    view = run.ok
    stop_ns, usage = _genai_bench_stop(view)
    tally = first_known(usage, encoded_whole(view.text))
    # An answer without text gets its first token's time from its usage chunk.
    late = (view.text.count == 0) & (usage > 1)
    counted = (view.text.count > 0) | late
    first_ns = np.where(late, stop_ns, view.text.first_ns)
    decode_ns = stop_ns - first_ns
    decoding = counted & (tally.tokens > 1) & (decode_ns >= SHORTEST_DECODE_NS)
    samples = {
        "tpot_ms": decode_ns[decoding] / (tally.tokens[decoding] - 1),
        "ttft_ms": first_ns[counted],
        "e2e_ms": stop_ns[counted],
    }
    return reading(
        tables_ms(samples, (25, 50, 75, 90, 95, 99), "mean", "min", "max", "std"),
        why=tally.why,
        output_tps=per_second(tally.tokens[counted], run.wall_ns),
    )


def _genai_bench_stop(view: View) -> tuple[Ints, Ints]:
    """When reading stops, and the usage seen by then: at a chunk with finish reason and usage,
    at a usage chunk after a finish reason, at [DONE], or with the response."""
    finished = view.pick(view.has_finish & view.has_choices)
    both = view.pick(view.has_finish & view.has_riding_usage)
    after_finish = (finished.count > 0) & (view.usage_only.last_index > finished.last_index)
    stop_ns = np.where(view.done.count > 0, view.done.first_ns, view.ended_ns)
    stop_ns = np.where(after_finish, view.usage_only.last_ns, stop_ns)
    stop_ns = np.where(both.count > 0, both.first_ns, stop_ns)
    seen = after_finish | (both.count > 0)
    return stop_ns, np.where(seen, view.usage_tokens, MISSING)


def mlperf(run: Run) -> Reading:
    """MLPerf LoadGen, server scenario: from the scheduled send, to the end of the response."""
    view = run.ok
    counted = view.output.count > 0
    tally = usage_or(view, recorded(view, NO_COUNT))
    tokens = tally.tokens[counted]
    waited_ns = view.sent_ns - view.scheduled_ns
    first_ns = (view.output.first_ns + waited_ns)[counted]
    end_ns = (view.ended_ns + waited_ns)[counted]
    samples = {
        # An answer of one token is an error to LoadGen, which then divides by −1.
        "tpot_ms": (end_ns - first_ns) / np.where(tokens > 1, tokens - 1, -1),
        "ttft_ms": first_ns,
        "e2e_ms": end_ns,
    }
    span = _to_last_issued_ns(view.scheduled_ns[counted], end_ns)
    return reading(
        tables_ms(samples, (50, 90, 95, 97, 99, 99.9), "mean", "min", "max", rule=product_index),
        why=tally.why,
        output_tps=per_second(tokens[tokens > 1], span),
    )


def _to_last_issued_ns(scheduled_ns: Ints, end_ns: Ints) -> int:
    """From the first schedule to the end of the request that was issued last."""
    if not len(scheduled_ns):
        return 0
    final = int(np.argmax(scheduled_ns))
    return int(scheduled_ns[final] + end_ns[final] - scheduled_ns.min())


def endpoints(run: Run) -> Reading:
    """MLCommons endpoints: TPOT over the tokens of the text after the first chunk."""
    view = run.ok
    counted = view.output.count > 0
    whole = encoded_whole(view.output)
    after = _after_first_chunk(view, whole)
    decoding = counted & (after.tokens > 0)
    decode_ns = (view.ended_ns - view.output.first_ns)[decoding]
    samples = {
        "tpot_ms": decode_ns / after.tokens[decoding],
        "ttft_ms": view.output.first_ns[counted],
        "e2e_ms": view.ended_ns,
    }
    percentiles = (1, 5, 10, 25, 50, 75, 80, 90, 95, 97, 99, 99.9)
    return reading(
        tables_ms(samples, percentiles, "mean", "min", "max", "sample_std", rule=lower),
        why=after.why,
        output_tps=per_second(whole.tokens, span_ns(view, view.ended_ns)),
    )


def _after_first_chunk(view: View, whole: Tally) -> Tally:
    begun = view.output.count > 0
    starts = np.cumsum(view.output.count) - view.output.count
    first = np.zeros(len(view), np.int64)
    first[begun] = view.output.held[starts[begun]]
    why = whole.why or (None if is_additive(view) else PIECEWISE)
    if len(view.output.index) != len(view.content.index):
        why = TEMPLATE
    return Tally(whole.tokens - first, why)


def llmperf(run: Run) -> Reading:
    """llmperf: the last content's time over the number of lines, so TTFT is averaged in."""
    view = run.ok
    # It asks for no usage, so it would see no usage chunk.
    seen = view.pick((view.has_choices | ~view.has_usage) & (view.kind != DONE))
    counted = seen.count > 0
    samples = {
        "itl_ms": np.maximum(view.content.last_ns, 0)[counted] / seen.count[counted],
        "ttft_ms": np.maximum(view.content.first_ns, 0)[counted],
        "e2e_ms": view.ended_ns[counted],
    }
    percentiles = (25, 50, 75, 90, 95, 99)
    return reading(tables_ms(samples, percentiles, "mean", "min", "max", "sample_std"))


def hf_benchmarker(run: Run) -> Reading:
    """Hugging Face inference-benchmarker: first to last content over all tokens but one."""
    view = run.ok
    finishing = view.pick((view.kind == CONTENT) & view.has_finish)
    counted = (view.content.count > 0) & ((view.done.count > 0) | (finishing.count > 0))
    end_ns = np.where(view.done.count > 0, view.done.last_ns, finishing.last_ns)
    tally = encoded_pieces(view.content)
    decode_ns = (view.content.last_ns - view.content.first_ns)[counted]
    samples = {
        # An answer in one chunk has an ITL of 0, and counts.
        "itl_ms": decode_ns / np.maximum(tally.tokens[counted] - 1, 1),
        "ttft_ms": view.content.first_ns[counted],
        "e2e_ms": end_ns[counted],
    }
    return reading(
        tables_ms(samples, (50, 60, 70, 80, 90, 95, 99), "mean"),
        why=tally.why,
        output_tps=per_second(tally.tokens[counted], _first_to_last_ended_ns(run.sent)),
    )


def _first_to_last_ended_ns(view: View) -> int:
    """From the send of the request that ended first to the end of the one that ended last."""
    if not len(view):
        return 0
    ends = view.sent_ns + view.ended_ns
    return int(ends.max() - view.sent_ns[int(np.argmin(ends))])
