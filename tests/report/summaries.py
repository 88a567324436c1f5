"""Hand-made summaries, one a situation, for the tests of the report."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

Situation = Callable[[], dict[str, Any]]


def distribution(
    n: int, mean: float, p50: float, p90: float | None, p99: float | None, maximum: float
) -> dict[str, Any]:
    def around(figure: float | None) -> list[float] | None:
        return None if figure is None else [figure * 0.99, figure * 1.02]

    return {
        "n": n,
        "mean": mean,
        "std": mean / 20,
        "p50": p50,
        "p90": p90,
        "p95": p90,
        "p99": p99,
        "p999": None,
        "max": maximum,
        "ci95": {"p50": around(p50), "p90": around(p90), "p99": around(p99)},
    }


def tool(mean: float, p50: float, p99: float, approximate: bool = False) -> dict[str, Any]:
    return {
        "itl_ms": {"mean": mean, "p50": p50, "p99": p99},
        "ttft_ms": {"mean": 55.2, "p50": 55.1, "p99": 60.0},
        "approximate": approximate,
    }


SMOOTH: dict[str, Any] = {
    "schema": 1,
    "run": {
        "settings": {
            "url": "http://127.0.0.1:8000/v1",
            "model": "metronome",
            "mode": "closed",
            "concurrency": 50,
            "rate": None,
            "requests": 100,
        },
        "duration_s": 2.31,
        "partial": False,
        "calibration": {"floor_us": {"p50": 0.5, "p99": 11.0}},
        "host": {"loopback": True},
        "lost_streams": 0,
        "recording": "legato-run.parquet",
    },
    "streams": {
        "total": 100,
        "ok": 100,
        "failed": 0,
        "aborted": 0,
        "not_streaming": 0,
        "left_open": 0,
        "without_done": 0,
    },
    "tokens": {"output": 10_000, "source": "chunk_usage"},
    "tokens_per_chunk": {"mean": 1.0, "p50": 1.0, "p99": 1.0, "max": 1.0},
    "itl_ms": distribution(9_900, 10.003, 10.0, 10.4, 11.2, 13.9),
    "itl_zeros_ms": distribution(9_900, 10.003, 10.0, 10.4, 11.2, 13.9),
    "chunk_gap_ms": distribution(9_900, 10.003, 10.0, 10.4, 11.2, 13.9),
    "tpot_ms": distribution(100, 10.003, 10.0, 10.05, None, 10.1),
    "tpot_incl_ms": distribution(100, 10.45, 10.44, 10.5, None, 10.6),
    "ttft_ms": distribution(100, 55.2, 55.1, 57.3, None, 61.2),
    "ttft_intended_ms": distribution(100, 55.2, 55.1, 57.3, None, 61.2),
    "ttft_any_ms": distribution(100, 55.2, 55.1, 57.3, None, 61.2),
    "decode_ms": distribution(100, 990.3, 990.1, 995.0, None, 999.9),
    "e2e_ms": distribution(100, 1045.5, 1045.2, 1052.0, None, 1061.1),
    "tps": {"stream": 99.97, "system": 4871.2, "system_window": 1.9},
    "smoothness": {
        "stall_count": 0,
        "stall_ratio": 0.0,
        "streams_with_stalls": 0,
        "stall_moments": 0,
        "shared_stall_share": None,
        "slow_share": 0.0,
        "slow_gap_ms": None,
        "fluidity_index": 1.0,
        "burst_share": 0.0,
        "cv": 0.03,
        "reader_wait_ms": 0.0,
    },
    "dialects": {
        "vllm": tool(10.0, 10.0, 11.2),
        "sglang": tool(10.0, 10.0, 11.2),
        "evalscope": tool(10.0, 10.0, 11.2),
        "servebench": tool(10.0, 10.0, 11.2),
        "inference_perf": tool(10.0, 10.0, 11.2, approximate=True),
        "etalon": tool(10.0, 10.0, 11.2, approximate=True),
        "aiperf": tool(10.0, 10.0, 10.1, approximate=True),
        "genai_perf": tool(10.0, 10.0, 10.1, approximate=True),
        "guidellm": tool(10.0, 10.0, 10.1),
        "hf_benchmarker": tool(10.0, 10.0, 10.1, approximate=True),
        "genai_bench": tool(10.0, 10.0, 10.1),
        "mlperf": tool(10.0, 10.0, 10.1),
        "endpoints": tool(10.0, 10.0, 10.1, approximate=True),
        "llmperf": tool(10.4, 10.4, 10.6, approximate=True),
    },
    "histogram_ms": {
        "edges": [8.0 * 1.03**k for k in range(21)],
        "counts": [0, 1, 3, 12, 60, 400, 2600, 4200, 1900, 500, 130, 60, 20, 8, 3, 1, 0, 0, 1, 1],
    },
    "instrument": {
        "clock": "kernel",
        "error_us": {"p50": 0.8, "p99": 11.3, "max": 118.0},
        "client_merged_share": 0.002,
        "coalesced_share": 0.004,
        "lag_us": {"p50": 24.0, "p99": 3100.0},
        "schedule_slip_ms": None,
        "concurrency_reached": 49.9,
        "cpu_share": 0.41,
        "verdict": "valid",
        "reasons": [],
    },
}


def smooth() -> dict[str, Any]:
    return copy.deepcopy(SMOOTH)


def bursty() -> dict[str, Any]:
    """Four events in one write every 40 ms."""
    summary = smooth()
    summary["itl_ms"] = distribution(9_900, 9.7, 0.0, 40.1, 41.0, 43.2)
    summary["chunk_gap_ms"] = distribution(9_900, 9.7, 0.0, 40.1, 41.0, 43.2)
    summary["smoothness"] |= {"burst_share": 0.7576, "cv": 1.72}
    for name in ("vllm", "sglang", "evalscope", "servebench", "inference_perf", "etalon"):
        summary["dialects"][name] = tool(9.7, 0.0, 41.0)
    summary["histogram_ms"] = {
        "edges": [0.0, 0.01, 1.0, 10.0, 39.0, 40.0, 41.0, 43.2],
        "counts": [7500, 0, 0, 0, 900, 1400, 100],
    }
    return summary


def multi_token() -> dict[str, Any]:
    """Three tokens in one event every 30 ms."""
    summary = smooth()
    summary["chunk_gap_ms"] = distribution(3_300, 30.01, 30.0, 30.4, 31.2, 33.9)
    summary["tokens_per_chunk"] = {"mean": 3.0, "p50": 3.0, "p99": 3.0, "max": 3.0}
    summary["smoothness"] |= {"burst_share": 0.667}
    for name in ("vllm", "sglang", "evalscope", "servebench"):
        summary["dialects"][name] = tool(30.0, 30.0, 31.2)
    for name in ("inference_perf", "etalon"):
        summary["dialects"][name] = tool(10.0, 0.0, 31.1, approximate=True)
    return summary


def stalls() -> dict[str, Any]:
    summary = smooth()
    summary["itl_ms"] = distribution(9_900, 10.2, 10.0, 10.4, 11.9, 512.0)
    summary["chunk_gap_ms"] = distribution(9_900, 10.2, 10.0, 10.4, 11.9, 512.0)
    summary["smoothness"] |= {
        "stall_count": 3,
        "stall_ratio": 0.015,
        "streams_with_stalls": 2,
        "stall_moments": 3,
        "shared_stall_share": 0.0,
        "fluidity_index": 0.998,
        "cv": 0.31,
        "reader_wait_ms": 12.4,
    }
    for name in ("vllm", "sglang", "evalscope", "servebench", "inference_perf", "etalon"):
        summary["dialects"][name] = tool(10.2, 10.0, 11.9)
    return summary


def shared_stalls() -> dict[str, Any]:
    """The server paused four times, ten streams at a time."""
    summary = stalls()
    summary["smoothness"] |= {
        "stall_count": 40,
        "streams_with_stalls": 40,
        "stall_moments": 4,
        "shared_stall_share": 1.0,
    }
    return summary


def uneven() -> dict[str, Any]:
    """Every eighth gap shares its step with the prefill of another request."""
    summary = smooth()
    for key in ("itl_ms", "itl_zeros_ms", "chunk_gap_ms"):
        summary[key] = distribution(9_900, 13.8, 10.0, 40.0, 42.0, 48.7)
    summary["smoothness"] |= {"slow_share": 0.124, "slow_gap_ms": 40.02, "cv": 0.7}
    for name in ("vllm", "sglang", "evalscope", "servebench", "inference_perf", "etalon"):
        summary["dialects"][name] = tool(13.8, 10.0, 42.0)
    return summary


def some_timed_out() -> dict[str, Any]:
    summary = smooth()
    summary["streams"] |= {"total": 20, "ok": 15, "failed": 5}
    summary["failures"] = [failure("timeout", 5, "no first byte in 10 s")]
    return summary


def embedded() -> dict[str, Any]:
    """`legato bench` without a URL, on a machine that was never calibrated."""
    summary = smooth()
    summary["run"]["settings"] |= {"embedded": True, "warmup": 10}
    summary["run"]["calibration"] = None
    summary["instrument"]["error_us"] = {"p50": 0.2, "p99": 0.2, "max": 0.2}
    summary["itl_ms"]["ci95"]["p50"] = [9.9999, 10.0001]
    return summary


def degraded() -> dict[str, Any]:
    summary = smooth()
    summary["instrument"] |= {
        "error_us": {"p50": 1.1, "p99": 1830.0, "max": 9120.0},
        "client_merged_share": 0.047,
        "coalesced_share": 0.051,
        "cpu_share": 0.93,
        "verdict": "degraded",
        "reasons": ["the client merged 4.7 % of chunks (limit 3 %): it read them late"],
    }
    return summary


def invalid() -> dict[str, Any]:
    summary = degraded()
    summary["instrument"] |= {
        "client_merged_share": 0.31,
        "coalesced_share": 0.33,
        "concurrency_reached": 31.2,
        "cpu_share": 1.0,
        "verdict": "invalid",
        "reasons": [
            "the client merged 31 % of chunks (limit 10 %): it was the bottleneck",
            "31.2 of 50 streams were open (limit 98 %)",
        ],
    }
    return summary


def all_failed() -> dict[str, Any]:
    summary = smooth()
    for key in [key for key in summary if key.endswith("_ms")]:
        summary[key] = {"n": 0, "mean": None}
    summary["streams"] = {"total": 7, "ok": 0, "failed": 7, "aborted": 0, "not_streaming": 0}
    summary["failures"] = [
        failure("timeout", 2, "no first byte in 10 s"),
        failure("http_error", 5, "HTTP 503: \x1b[31mno [bold]capacity[/bold]\x1b[0m", 503),
    ]
    summary["tokens"] = summary["tps"] = summary["smoothness"] = summary["dialects"] = None
    summary["tokens_per_chunk"] = summary["instrument"] = None
    return summary


def failure(status: str, count: int, error: str, http_status: int | None = None) -> dict[str, Any]:
    return {"status": status, "http_status": http_status, "count": count, "error": error}


def not_streaming() -> dict[str, Any]:
    summary = all_failed()
    summary["streams"] |= {"failed": 0, "not_streaming": 7}
    summary["failures"] = [
        failure("not_streaming", 7, "the answer is application/json, not an event stream")
    ]
    return summary


def all_cut() -> dict[str, Any]:
    """No stream ended well, but each gave some tokens first."""
    summary = smooth()
    summary["streams"] |= {"ok": 0, "aborted": 100}
    summary["failures"] = [failure("aborted", 100, "connection reset after 40 chunks")]
    for key in ("tpot_ms", "tpot_incl_ms", "decode_ms", "e2e_ms"):
        summary[key] = {"n": 0, "mean": None}
    return summary


def partial() -> dict[str, Any]:
    summary = smooth()
    summary["run"] |= {"partial": True}
    summary["streams"] |= {"total": 37, "ok": 33, "aborted": 4, "left_open": 4}
    summary["failures"] = []
    summary["tokens"] = {"output": 3_300, "source": "chunks"}
    return summary


def open_loop() -> dict[str, Any]:
    """A constant rate to another host: what is counted from the intended send differs."""
    summary = smooth()
    summary["run"]["settings"] |= {"mode": "open", "concurrency": None, "rate": 25.0}
    summary["run"]["host"] = {"loopback": False}
    summary["ttft_intended_ms"] = distribution(100, 56.0, 55.3, 58.9, None, 66.0)
    summary["instrument"] |= {
        "schedule_slip_ms": {"p50": 0.03, "p99": 0.41},
        "concurrency_reached": None,
    }
    summary["dialects"]["mlperf"]["ttft_ms"] = {"mean": 59.9}
    summary["dialects"]["vllm"] = tool(10.4, 10.0, 12.9)
    return summary
