"""What each public tool would have printed for a recording, its flaws included.

Each dialect is a pure function of what a tool sees of the recording; see docs/dialects.md for
the version each was read from.
"""

from __future__ import annotations

from collections.abc import Callable

from legato.metrics.dialects.chunk_gaps import evalscope, servebench, sglang, vllm
from legato.metrics.dialects.reading import Reading
from legato.metrics.dialects.request_means import (
    aiperf,
    endpoints,
    genai_bench,
    genai_perf,
    guidellm,
    hf_benchmarker,
    llmperf,
    mlperf,
)
from legato.metrics.dialects.token_gaps import etalon, inference_perf
from legato.metrics.dialects.view import Run, run_of
from legato.recording import Recording

DIALECTS: dict[str, Callable[[Run], Reading]] = {
    "vllm": vllm,
    "sglang": sglang,
    "aiperf": aiperf,
    "genai_perf": genai_perf,
    "guidellm": guidellm,
    "inference_perf": inference_perf,
    "genai_bench": genai_bench,
    "evalscope": evalscope,
    "mlperf": mlperf,
    "endpoints": endpoints,
    "llmperf": llmperf,
    "etalon": etalon,
    "hf_benchmarker": hf_benchmarker,
    "servebench": servebench,
}


def all_dialects(recording: Recording) -> dict[str, Reading]:
    """Every dialect's reading: tables in ms, `output_tps`, `approximate` and `why`."""
    run = run_of(recording)
    return {name: dialect(run) for name, dialect in DIALECTS.items()}
