"""Tools whose ITL is the gaps between tokens, where the tokens of one chunk are 0 apart.

A chunk of k tokens gives k − 1 zeros and one whole gap.
"""

from __future__ import annotations

import numpy as np

from legato.metrics.dialects.reading import Reading, per_second, reading
from legato.metrics.dialects.statistics import Samples, sketched, tables_ms
from legato.metrics.dialects.tally import PIECEWISE, encoded_whole, is_additive, why_not_encoded
from legato.metrics.dialects.view import Picked, Run
from legato.recording import Ints


def inference_perf(run: Run) -> Reading:
    """inference-perf: content chunks only; a stream needs two tokens to have a TTFT."""
    view = run.ok
    bearing = view.content
    if bool(np.any(bearing.held == 0)):
        bearing = Picked(view, bearing.index[bearing.held > 0])
    streamed = bearing.tokens > 1
    whole = encoded_whole(view.content)
    decoding = streamed & (whole.tokens > 1)
    decode_ns = (bearing.last_ns - bearing.first_ns)[decoding]
    samples = {
        "itl_ms": _with_zeros(bearing.sorted_gaps_ns, bearing.held),
        "tpot_ms": decode_ns / (whole.tokens[decoding] - 1),
        "ttft_ms": bearing.first_ns[streamed],
        "e2e_ms": view.ended_ns,
    }
    percentiles = (0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9)
    return reading(
        tables_ms(samples, percentiles, "mean", "min", "max"),
        why=why_not_encoded(view) or whole.why,
        output_tps=per_second(whole.tokens, run.wall_ns),
    )


def etalon(run: Run) -> Reading:
    """etalon: a sketch of everything, failed requests included as zeros."""
    view = run.sent
    # A chunk has a sample even where the re-encoded text did not grow by a token.
    samples = np.maximum(view.content.held, 1)
    count = np.bincount(view.content.stream, samples, len(view))
    received = view.content.tokens > 0
    first_ns = np.where(received, view.content.first_ns, 0)
    last_ns = np.maximum(view.content.last_ns, 0)
    tpot_ns = np.where(received, last_ns - first_ns, 0) / np.maximum(count - 1, 1)
    series = {
        "itl_ms": _with_zeros(view.content.sorted_gaps_ns, samples),
        "tpot_ms": tpot_ns,
        "ttft_ms": first_ns,
        "e2e_ms": last_ns,
    }
    return reading(
        tables_ms(series, (50, 90, 99), "mean", rule=sketched),
        why=why_not_encoded(view) or (None if is_additive(view) else PIECEWISE),
    )


def _with_zeros(sorted_gaps_ns: Ints, tokens: Ints) -> Samples:
    zeros = int(tokens.sum()) - len(tokens)
    return np.concatenate([np.zeros(zeros, np.int64), sorted_gaps_ns])
