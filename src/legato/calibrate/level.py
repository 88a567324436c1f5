"""One level of calibration: a known schedule through the same client, compared with the truth."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legato.calibrate.truth import Comparison, compare, quantiles_us
from legato.errors import LegatoError
from legato.metronome import truth as truths
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.metronome.tls import TlsFiles
from legato.report.live import LiveView
from legato.traffic import bench
from legato.traffic.asking import Asking
from legato.traffic.lengths import fixed
from legato.traffic.plan import check_load
from legato.wire.folder import load as load_recording

# What a level must keep for its figures to be trusted; the same as the project claims of itself.
MAX_ERROR_P50_US = 5.0
MAX_ERROR_P99_US = 50.0
MIN_EXACT_SHARE = 0.97
MIN_CONTAINED_SHARE = 0.99


@dataclass(frozen=True, slots=True)
class Level:
    streams: int
    tokens_per_s: float  # of each stream

    @property
    def events_per_s(self) -> float:
        return self.streams * self.tokens_per_s


@dataclass(frozen=True, slots=True)
class Figures:
    """What a level showed. Errors are |recorded gap − true gap|."""

    level: Level
    gaps: int
    kernel_us: dict[str, float | None]  # of gaps whose both ends are exact
    user_us: dict[str, float | None]  # the same run, by the time of the read
    truth_width_us: dict[str, float | None]  # how well the truth itself is known
    inside_share: float  # of exact arrivals: inside the truth's interval
    exact_share: float
    merged_share: float
    contained_share: float | None
    failed_streams: int
    lost_events: int
    ttft_error_us: float | None  # mean
    cpu_us_per_event: float
    cpu_share: float

    @property
    def complaints(self) -> list[str]:
        """Why this level cannot be trusted; empty where it can."""
        found = []
        if self.failed_streams:
            found.append(f"{self.failed_streams} streams failed")
        if self.lost_events:
            found.append(f"{self.lost_events} events were lost")
        if self.exact_share < MIN_EXACT_SHARE:
            found.append(f"only {self.exact_share:.1%} of arrivals are exact")
        if self.contained_share is not None and self.contained_share < MIN_CONTAINED_SHARE:
            found.append(f"only {self.contained_share:.1%} of intervals hold the truth")
        for name, limit_us in (("p50", MAX_ERROR_P50_US), ("p99", MAX_ERROR_P99_US)):
            error_us = self.kernel_us[name]
            if error_us is None:
                found.append("no gap could be compared")
            elif error_us > limit_us:
                found.append(f"{name} error {error_us:.0f} µs is over {limit_us:.0f} µs")
        return found


def measure(
    level: Level,
    *,
    seconds: float,
    tls: TlsFiles | None = None,
    workers: int | None = None,
    requests: int | None = None,
) -> Figures:
    """Run one level; each stream lasts `seconds`, and there is one a slot unless more are asked."""
    tokens = max(10, round(seconds * level.tokens_per_s))
    gap_ms = 1000 / level.tokens_per_s
    # Streams that start together would otherwise march in step for ever, as real ones do not.
    pattern = Pattern(
        gap_ms=gap_ms, first_token_ms=50.0, first_token_spread_ms=gap_ms, tokens=tokens
    )
    with tempfile.TemporaryDirectory(prefix="legato-") as name:
        folder = Path(name)
        with running(pattern, truth=folder / "log.truth", tls=tls) as metronome, LiveView() as view:
            asked = bench.Bench(
                url=metronome.url,
                load=check_load(
                    concurrency=level.streams,
                    requests=requests or level.streams,
                    workers=workers,
                ),
                out=folder / "run.parquet",
                asking=Asking(fixed(16), fixed(tokens)),
                insecure=tls is not None,
            )
            result = bench.run(asked, view)
            if result.interrupted:
                raise KeyboardInterrupt
        recording = load_recording(folder / "run.parquet")
        if not (recording.strings("status") == "ok").any():
            raise LegatoError(f"no stream succeeded at {level.streams} streams")
        found = compare(recording, truths.load(folder / "log.truth"))
    return _figures(level, found, recording.meta["load"], len(recording.arrival_ns))


def _figures(level: Level, found: Comparison, load: dict[str, Any], events: int) -> Figures:
    exact = found.gap_errors_ns(found.kernel_ns, exact_only=True)
    return Figures(
        level=level,
        gaps=len(exact),
        kernel_us=quantiles_us(exact),
        user_us=quantiles_us(found.gap_errors_ns(found.user_ns, exact_only=False)),
        truth_width_us=quantiles_us(found.width_ns),
        inside_share=found.inside_share,
        exact_share=found.exact_share,
        merged_share=found.merged_share,
        contained_share=found.contained_share,
        failed_streams=found.failed_streams,
        lost_events=found.lost_events,
        ttft_error_us=float(found.ttft_ns.mean()) / 1e3 if len(found.ttft_ns) else None,
        cpu_us_per_event=load["cpu_ns"] / 1e3 / max(1, events),
        cpu_share=load["cpu_share"] or 0.0,
    )
