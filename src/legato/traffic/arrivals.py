"""When requests are meant to leave, in open loop: a rate over time, and how arrivals are spaced
within it.

Every shape is one construction. Arrivals of a process of rate 1 (evenly spaced, exponential or
gamma) are laid through the inverse of the cumulated rate, so a ramp of Poisson arrivals is as exact
as a constant rate. The same seed gives the same schedule, to the nanosecond.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from legato.errors import UsageError

SPACINGS = ("constant", "poisson", "gamma")
NS_PER_S = 1_000_000_000
MAX_RATE = 1e9
MAX_SECONDS = 1e8  # three years: its nanoseconds fit wherever times are kept


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in which the rate goes from one value to another in a straight line."""

    seconds: float  # infinite for the last one of a load that ends by its number of requests
    start_rate: float
    end_rate: float

    @property
    def arrivals(self) -> float:
        """How many are expected in it."""
        return self.seconds * (self.start_rate + self.end_rate) / 2

    def time_of(self, expected: float) -> float:
        """When so many have been expected since the span began, in seconds."""
        if expected <= 0:
            return 0.0
        slope = 0.0 if math.isinf(self.seconds) else (self.end_rate - self.start_rate)
        slope /= self.seconds if slope else 1.0
        if slope == 0.0:
            return expected / self.start_rate
        # start·t + slope·t²/2 = expected, in the form that does not cancel
        root = math.sqrt(max(0.0, self.start_rate**2 + 2 * slope * expected))
        return 2 * expected / (self.start_rate + root)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A schedule's description: what is recorded, and what makes it again."""

    spans: tuple[Span, ...]
    spacing: str = "constant"
    burstiness: float = 1.0  # of gamma spacing: its shape; 1 is Poisson, less comes in bursts
    seed: int = 0

    @property
    def expected(self) -> float:
        """How many arrivals the whole schedule has, on average."""
        return sum(span.arrivals for span in self.spans)

    @property
    def is_endless(self) -> bool:
        return any(math.isinf(span.seconds) for span in self.spans)

    @property
    def mean_rate(self) -> float:
        """Requests a second over the whole schedule."""
        if self.is_endless:
            return self.spans[-1].start_rate
        return self.expected / sum(span.seconds for span in self.spans)

    def describe(self) -> dict[str, Any]:
        """What makes this schedule again, for the recording."""
        spans = [
            {
                "seconds": None if math.isinf(span.seconds) else span.seconds,
                "start_rate": span.start_rate,
                "end_rate": span.end_rate,
            }
            for span in self.spans
        ]
        return {
            "spacing": self.spacing,
            "burstiness": self.burstiness if self.spacing == "gamma" else None,
            "seed": self.seed,
            "spans": spans,
        }

    def offsets_ns(self, requests: int | None = None) -> list[int]:
        """Intended times from the start, in order; at most `requests` of them."""
        offsets: list[int] = []
        began_s, passed = 0.0, 0.0
        steps = self._steps()
        expected = next(steps)
        for span in self.spans:
            while expected - passed < span.arrivals:
                if requests is not None and len(offsets) >= requests:
                    return offsets
                offsets.append(round((began_s + span.time_of(expected - passed)) * NS_PER_S))
                expected += next(steps)
            began_s += span.seconds
            passed += span.arrivals
        return offsets

    def _steps(self) -> Iterator[float]:
        """The unit process: where the first arrival is, then the distances between them."""
        if self.spacing == "constant":
            yield 0.0
            while True:
                yield 1.0
        generator = random.Random(self.seed)
        shape = self.burstiness if self.spacing == "gamma" else 1.0
        while True:
            yield generator.gammavariate(shape, 1 / shape)


def parse_rate(text: str, duration_s: float | None) -> tuple[Span, ...]:
    """`10`: a constant rate; `5:50`: a ramp over the duration; `5@30,20@60`: steps of a rate for
    so many seconds."""
    if "@" in text:
        if duration_s is not None:
            raise UsageError("--rate with steps has its own duration: leave out --duration")
        return tuple(_step(part) for part in text.split(","))
    first, colon, last = text.partition(":")
    if not colon:
        rate = _rate(first, text)
        return (Span(math.inf if duration_s is None else duration_s, rate, rate),)
    if duration_s is None:
        raise UsageError(f"--rate {text} is a ramp, which needs --duration")
    start, end = _rate(first, text, least=0.0), _rate(last, text, least=0.0)
    if start == end == 0:
        raise UsageError(f"--rate {text} sends nothing")
    return (Span(duration_s, start, end),)


def _step(part: str) -> Span:
    rate_text, _, seconds_text = part.strip().partition("@")
    rate = _rate(rate_text, part)
    try:
        seconds = float(seconds_text.removesuffix("s"))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_SECONDS:
        raise UsageError(f"--rate: {part.strip()!r} is not RATE@SECONDS")
    return Span(seconds, rate, rate)


def _rate(text: str, whole: str, least: float = 1e-9) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not least <= rate <= MAX_RATE:
        raise UsageError(
            f"--rate {whole} must be a number greater than 0 and at most {MAX_RATE:g},"
            " a ramp FROM:TO or steps RATE@SECONDS,…"
        )
    return rate
