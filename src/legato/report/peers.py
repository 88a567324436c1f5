"""What other tools would have printed from the same recording, those that agree together.

It compares and names; the figures themselves come from the summary's `dialects`.
"""

from __future__ import annotations

from dataclasses import dataclass

from legato.report.lookup import Summary, number, value
from legato.report.words import TOKENS_PER_CHUNK_LIMIT

# Figures this close are one figure to a reader.
AGREEMENT = 0.02
APPROXIMATE = "≈"

_MEANS = "one mean a request: the tail is averaged away"
_CHUNKS = "a chunk counts as one token, whatever it holds"
_ZEROS = "zeros inside a chunk, then the whole gap"
_EXTRA_CHUNKS = "role-only, empty and finish chunks count too"
_INTERPOLATED = "other chunks counted, or percentiles taken another way"

# tool -> (name, why its ITL differs from the token gaps, why its TTFT may differ)
TOOLS = {
    "vllm": ("vLLM", _CHUNKS, "a role-only chunk counts as the first token"),
    "sglang": ("SGLang", _CHUNKS, ""),
    "evalscope": ("EvalScope", _CHUNKS, ""),
    "servebench": ("servebench", _CHUNKS, ""),
    "inference_perf": ("inference-perf", _ZEROS, "reasoning is not counted"),
    "etalon": ("etalon", _ZEROS, ""),
    "aiperf": ("AIPerf", _MEANS, ""),
    "genai_perf": ("genai-perf", _MEANS, ""),
    "guidellm": ("GuideLLM", _MEANS, ""),
    "hf_benchmarker": ("HF-benchmarker", _MEANS, ""),
    "genai_bench": ("genai-bench", _MEANS, ""),
    "mlperf": ("MLPerf", _MEANS, "counted from the intended send"),
    "endpoints": ("MLCommons-endpoints", _MEANS, ""),
    "llmperf": ("llmperf", "the wait for the first token is averaged in", ""),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """ITL (or TPOT where a tool prints no ITL) and TTFT as one tool prints them, in ms."""

    mean_ms: float | None
    p50_ms: float | None
    p99_ms: float | None
    ttft_mean_ms: float | None

    @property
    def itl(self) -> tuple[float | None, float | None, float | None]:
        return self.mean_ms, self.p50_ms, self.p99_ms


@dataclass(frozen=True, slots=True)
class Group:
    """Tools whose figures agree, and why they differ from ours; no flaw where they do not."""

    names: list[str]
    reading: Reading
    flaws: list[str]


def own_reading(summary: Summary) -> Reading:
    return Reading(
        number(summary, "itl_ms", "mean"),
        number(summary, "itl_ms", "p50"),
        number(summary, "itl_ms", "p99"),
        number(summary, "ttft_ms", "mean"),
    )


def peer_groups(summary: Summary) -> list[Group]:
    """The tools that print something, grouped; those that agree with us first."""
    ours = own_reading(summary)
    groups: list[Group] = []
    for tool, (name, itl_flaw, ttft_flaw) in TOOLS.items():
        reading = _reading_of(summary, tool)
        if reading is None:
            continue
        shown = f"{APPROXIMATE}{name}" if value(summary, "dialects", tool, "approximate") else name
        flaws = [] if _agree(reading.itl, ours.itl) else [_cause(tool, itl_flaw, summary)]
        if ttft_flaw and not _close(reading.ttft_mean_ms, ours.ttft_mean_ms):
            flaws.append(f"TTFT: {ttft_flaw}")
        home = next((g for g in groups if g.flaws == flaws and _same(g.reading, reading)), None)
        if home is None:
            groups.append(Group([shown], reading, flaws))
        else:
            home.names.append(shown)
    return sorted(groups, key=lambda group: bool(group.flaws))


def _cause(tool: str, itl_flaw: str, summary: Summary) -> str:
    """Why a tool's ITL differs; with one token a chunk, chunks are not the reason."""
    per_chunk = number(summary, "tokens_per_chunk", "mean")
    if itl_flaw not in (_CHUNKS, _ZEROS) or (per_chunk and per_chunk > TOKENS_PER_CHUNK_LIMIT):
        return itl_flaw
    return _EXTRA_CHUNKS if tool == "vllm" else _INTERPOLATED


def _reading_of(summary: Summary, tool: str) -> Reading | None:
    metric = "itl_ms" if value(summary, "dialects", tool, "itl_ms") else "tpot_ms"
    mean, p50, p99 = (
        number(summary, "dialects", tool, metric, key) for key in ("mean", "p50", "p99")
    )
    if mean is None and p50 is None and p99 is None:
        return None
    return Reading(mean, p50, p99, number(summary, "dialects", tool, "ttft_ms", "mean"))


def _same(one: Reading, other: Reading) -> bool:
    pairs = zip((*one.itl, one.ttft_mean_ms), (*other.itl, other.ttft_mean_ms), strict=True)
    return all((a is None) == (b is None) and _close(a, b) for a, b in pairs)


def _agree(
    theirs: tuple[float | None, float | None, float | None],
    ours: tuple[float | None, float | None, float | None],
) -> bool:
    return all(_close(a, b) for a, b in zip(theirs, ours, strict=True))


def _close(one: float | None, other: float | None) -> bool:
    """Whether two figures read alike; one that is not given contradicts nothing."""
    if one is None or other is None:
        return True
    return abs(one - other) <= AGREEMENT * max(abs(one), abs(other))
