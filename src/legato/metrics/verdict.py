"""Whether a run may be believed: thresholds, and a sentence for each one crossed."""

from __future__ import annotations

from dataclasses import dataclass

from legato.metrics.samples import NS_PER_MS

DEGRADED_MERGED_SHARE = 0.03
INVALID_MERGED_SHARE = 0.10
DEGRADED_ERROR_OF_ITL = 0.10
INVALID_CONCURRENCY_SHARE = 0.98
INVALID_SLIP_OF_TTFT = 0.01
DEGRADED_CPU_SHARE = 0.9
# Where bursts pull the median below this share of the mean, the error is held against the mean:
# several tokens in one segment have gaps of nothing, and any error is more than 10 % of that.
BURSTY_MEDIAN_OF_MEAN = 0.1


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the verdict rests on; none where the run does not tell."""

    merged_share: float | None = None
    error_p99_ns: float | None = None
    itl_p50_ns: float | None = None
    itl_mean_ns: float | None = None
    concurrency_asked: int | None = None
    concurrency_reached: float | None = None
    slip_p99_ns: float | None = None
    ttft_p50_ns: float | None = None
    clock_steps: int = 0
    cpu_share: float | None = None
    streams_lost: int = 0
    workers_lost: int = 0


def judge(evidence: Evidence) -> tuple[str, list[str]]:
    """(`valid`, `degraded` or `invalid`; the reasons, the grave ones first)."""
    invalid = _invalid_reasons(evidence)
    degraded = _degraded_reasons(evidence)
    verdict = "invalid" if invalid else "degraded" if degraded else "valid"
    return verdict, invalid + degraded


def _invalid_reasons(evidence: Evidence) -> list[str]:
    reasons = []
    merged = evidence.merged_share
    if merged is not None and merged > INVALID_MERGED_SHARE:
        reasons.append(
            f"the client merged {_percent(merged)} of chunks "
            f"(limit {_percent(INVALID_MERGED_SHARE)}): it was the bottleneck; "
            "use more workers, fewer streams or an idle machine"
        )
    asked, reached = evidence.concurrency_asked, evidence.concurrency_reached
    if asked and reached is not None and reached < INVALID_CONCURRENCY_SHARE * asked:
        reasons.append(
            f"{reached:.1f} streams were open on average where {asked} were asked for "
            f"(at least {_percent(INVALID_CONCURRENCY_SHARE)} must be): "
            "send more requests, ask for longer answers, or use more workers"
        )
    slip, ttft = evidence.slip_p99_ns, evidence.ttft_p50_ns
    if slip is not None and ttft is not None and slip > INVALID_SLIP_OF_TTFT * ttft:
        reasons.append(
            f"requests left up to {_ms(slip)} later than scheduled (p99; limit "
            f"{_percent(INVALID_SLIP_OF_TTFT)} of the median TTFT, {_ms(ttft)}): "
            "the client could not keep the rate; use more workers or a lower rate"
        )
    return reasons


def _degraded_reasons(evidence: Evidence) -> list[str]:
    reasons = []
    merged = evidence.merged_share
    if merged is not None and DEGRADED_MERGED_SHARE < merged <= INVALID_MERGED_SHARE:
        reasons.append(
            f"the client merged {_percent(merged)} of chunks "
            f"(limit {_percent(DEGRADED_MERGED_SHARE)}): it was late at times; "
            "use more workers or fewer streams"
        )
    error, (which, itl) = evidence.error_p99_ns, _usual_itl(evidence)
    if error is not None and itl is not None and error > DEGRADED_ERROR_OF_ITL * itl:
        reasons.append(
            f"a gap may be wrong by up to {_ms(error)} (p99), more than "
            f"{_percent(DEGRADED_ERROR_OF_ITL)} of the {which} ITL, {_ms(itl)}: "
            "free the machine of other work or use fewer streams"
        )
    if evidence.clock_steps:
        reasons.append(
            f"the system clock was stepped {_count(evidence.clock_steps, 'time')} during the run: "
            "arrivals around a step are the client's own times, not the kernel's"
        )
    if evidence.cpu_share is not None and evidence.cpu_share > DEGRADED_CPU_SHARE:
        reasons.append(
            f"the busiest worker used {_percent(evidence.cpu_share)} of a core "
            f"(limit {_percent(DEGRADED_CPU_SHARE)}): use more workers"
        )
    if evidence.streams_lost or evidence.workers_lost:
        reasons.append(
            f"{_count(evidence.workers_lost, 'worker')} died and "
            f"{_count(evidence.streams_lost, 'stream')} in flight went with it: "
            "the figures hold without them"
        )
    return reasons


def _usual_itl(evidence: Evidence) -> tuple[str, float | None]:
    p50, mean = evidence.itl_p50_ns, evidence.itl_mean_ns
    if p50 is not None and mean is not None and p50 < BURSTY_MEDIAN_OF_MEAN * mean:
        return "mean", mean
    return "median", p50


def _percent(share: float) -> str:
    return f"{share * 100:.1f}".removesuffix(".0") + " %"


def _ms(value_ns: float) -> str:
    return f"{value_ns / NS_PER_MS:.3g} ms"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
