"""What other tools would have printed from the same recording, those that agree together.

It compares and names; the figures themselves come from the summary's `dialects`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from legato.report.figures import UNKNOWN, between
from legato.report.lookup import Summary, number, value
from legato.report.words import TOKENS_PER_CHUNK_LIMIT

# Tools this close in every figure share a row, which shows from where to where they go.
AGREEMENT = 0.02
APPROXIMATE = "≈"

_CHUNKS = "a chunk counts as one token"
_ZEROS = "zeros inside a chunk, then the whole gap"
_MEANS = "one mean a request: no single gap shows"
_LINES = "a mean over lines, first wait included"
_EXTRA_CHUNKS = "role, empty and finish chunks count too"
_INTERPOLATED = "percentiles taken another way"

# tool -> (name, what its ITL is instead of a token gap, why its TTFT may differ)
TOOLS = {
    "vllm": ("vLLM", _CHUNKS, "a role-only chunk counts as first"),
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
    "llmperf": ("llmperf", _LINES, ""),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """ITL (or TPOT where a tool prints no ITL) and TTFT as printed, in ms."""

    mean_ms: float | None
    p50_ms: float | None
    p99_ms: float | None
    ttft_mean_ms: float | None

    @property
    def figures_ms(self) -> tuple[float | None, ...]:
        return self.mean_ms, self.p50_ms, self.p99_ms, self.ttft_mean_ms


@dataclass(frozen=True, slots=True)
class Group:
    """Tools that measure the same thing and agree, and why they differ from ours, if they do."""

    kind: str  # what their ITL is instead of a token gap
    names: list[str]
    readings: list[Reading]
    flaws: list[str]

    @property
    def reading(self) -> Reading:
        """The middle of what its tools print; a figure that none prints is none."""
        columns = zip(*(reading.figures_ms for reading in self.readings), strict=True)
        return Reading(*(_middle(column) for column in columns))

    @property
    def shown(self) -> list[str]:
        """Its figures as text: a range where its tools print different ones."""
        columns = zip(*(reading.figures_ms for reading in self.readings), strict=True)
        known = [[figure for figure in column if figure is not None] for column in columns]
        return [between(min(column), max(column)) if column else UNKNOWN for column in known]

    @property
    def notes(self) -> list[str]:
        """Why the row differs from ours, and which of its tools print fewer figures."""
        without = [
            name
            for name, reading in zip(self.names, self.readings, strict=True)
            if reading.p99_ms is None and self.reading.p99_ms is not None
        ]
        return [*self.flaws, *([f"no p99 from {', '.join(without)}"] if without else [])]


def own_reading(summary: Summary) -> Reading:
    return Reading(
        number(summary, "itl_ms", "mean"),
        number(summary, "itl_ms", "p50"),
        number(summary, "itl_ms", "p99"),
        number(summary, "ttft_ms", "mean"),
    )


def peer_groups(summary: Summary) -> list[Group]:
    """The tools that print something, grouped; those that agree with us first.

    Tools that print gaps never share a row with tools that print means of requests, however
    close they are. Without a gap there is nothing to compare.
    """
    if not number(summary, "itl_ms", "n"):
        return []
    groups: list[Group] = []
    for tool, (name, kind, _) in TOOLS.items():
        reading = _reading_of(summary, tool)
        if reading is None:
            continue
        shown = f"{APPROXIMATE}{name}" if value(summary, "dialects", tool, "approximate") else name
        flaws = _flaws(summary, tool, reading)
        home = next((g for g in groups if _belongs(g, kind, reading, flaws)), None)
        if home is None:
            groups.append(Group(kind, [shown], [reading], flaws))
        else:
            home.names.append(shown)
            home.readings.append(reading)
            home.flaws.extend(flaw for flaw in flaws if flaw not in home.flaws)
    return sorted(groups, key=lambda group: bool(group.flaws))


def _belongs(group: Group, kind: str, reading: Reading, flaws: list[str]) -> bool:
    if group.kind != kind or not all(_agree(reading, other) for other in group.readings):
        return False
    # A tool that prints no p99 cannot show the difference that the others' p99 shows.
    return flaws == group.flaws or None in reading.figures_ms


def _flaws(summary: Summary, tool: str, reading: Reading) -> list[str]:
    ours = own_reading(summary)
    _, itl_flaw, ttft_flaw = TOOLS[tool]
    flaws = []
    if not all(map(_close, reading.figures_ms[:3], ours.figures_ms[:3])):
        flaws.append(_cause(summary, tool, itl_flaw))
    if ttft_flaw and not _close(reading.ttft_mean_ms, ours.ttft_mean_ms):
        flaws.append(f"TTFT: {ttft_flaw}")
    return flaws


def _cause(summary: Summary, tool: str, itl_flaw: str) -> str:
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


def _agree(one: Reading, other: Reading) -> bool:
    return all(map(_close, one.figures_ms, other.figures_ms))


def _middle(figures_ms: Iterable[float | None]) -> float | None:
    known_ms = [figure for figure in figures_ms if figure is not None]
    return median(known_ms) if known_ms else None


def _close(one: float | None, other: float | None) -> bool:
    """Whether two figures read alike; one that is not given contradicts nothing."""
    if one is None or other is None:
        return True
    return abs(one - other) <= AGREEMENT * max(abs(one), abs(other))
