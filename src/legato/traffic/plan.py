"""A run as it was asked for, checked: what `legato bench` and every command that sends load
build, and what a worker is told."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, replace
from typing import Any

from legato.errors import UsageError
from legato.traffic.arrivals import MAX_SECONDS, NS_PER_S, Arrivals, Span, parse_rate
from legato.traffic.book import Book, Row
from legato.traffic.traces import Arrival
from legato.wire.deadlines import Deadlines

DEFAULT_CONCURRENCY = 10
DEFAULT_REQUESTS_A_SLOT = 10
MAX_REQUESTS = 2**32 - 1  # what the kernel's counter holds at first
MAX_SCHEDULED = 10_000_000  # intended times are kept in memory


@dataclass(frozen=True, slots=True)
class Load:
    """How much is sent when: a number of streams kept open, or requests on a schedule."""

    concurrency: int | None = None
    arrivals: Arrivals | None = None
    requests: int | None = None
    duration_s: float | None = None
    warmup: int = 0
    workers: int = 1
    trace: tuple[Arrival, ...] = ()

    @property
    def mode(self) -> str:
        return "open" if self.arrivals is not None or self.trace else "closed"

    @property
    def total(self) -> int | None:
        """Requests in all, warm-up included; None when time decides."""
        return None if self.requests is None else self.requests + self.warmup

    def schedule_ns(self) -> list[int]:
        """The intended times of an open loop, from its start."""
        if self.trace:
            return [round(arrival.at_s * NS_PER_S) for arrival in self.trace]
        return [] if self.arrivals is None else self.arrivals.offsets_ns(self.total)

    def describe_schedule(self) -> dict[str, Any] | None:
        """What makes the schedule again."""
        if self.trace:
            return {"spacing": "trace", "requests": len(self.trace)}
        return None if self.arrivals is None else self.arrivals.describe()

    @property
    def rate(self) -> float | None:
        """Requests a second, on average, of an open loop."""
        if self.trace:
            length_s = self.trace[-1].at_s
            return len(self.trace) / length_s if length_s else None
        return None if self.arrivals is None else self.arrivals.mean_rate

    def settings(self) -> dict[str, Any]:
        """As the recording has it."""
        return {
            "mode": self.mode,
            "concurrency": self.concurrency,
            "rate": self.rate,
            "requests": self.requests,
            "duration_s": self.duration_s,
            "warmup": self.warmup,
            "workers": self.workers,
        }


def check_load(
    *,
    concurrency: int | None,
    rate: str | None = None,
    spacing: str = "constant",
    burstiness: float | None = None,
    seed: int = 0,
    requests: int | None = None,
    duration_s: float | None = None,
    warmup: int = 0,
    workers: int | None = None,
    trace: tuple[Arrival, ...] = (),
) -> Load:
    """The load with its defaults filled in; contradictions are refused."""
    if trace and (concurrency is not None or rate is not None):
        raise UsageError("--trace has its own times: leave out --concurrency and --rate")
    if concurrency is not None and rate is not None:
        raise UsageError("--concurrency and --rate contradict each other: choose one")
    if requests is not None and duration_s is not None:
        raise UsageError("--requests and --duration contradict each other: choose one")
    _at_least("--concurrency", concurrency, 1)
    _at_least("--requests", requests, 1)
    _at_least("--workers", workers, 1)
    _at_least("--warmup", warmup, 0)
    if duration_s is not None:
        check_seconds("--duration", duration_s)
    arrivals = _arrivals(rate, spacing, burstiness, seed, duration_s)
    if trace:
        trace = _cut(trace, requests, duration_s, warmup)
        requests = len(trace) - warmup
    elif arrivals is None and concurrency is None:
        concurrency = _default_concurrency(requests, warmup, workers)
    if requests is None and duration_s is None and (arrivals is None or arrivals.is_endless):
        requests = DEFAULT_REQUESTS_A_SLOT * concurrency if concurrency else 100
    if concurrency is not None and requests is not None and requests + warmup < concurrency:
        raise UsageError(
            f"--concurrency {concurrency} can never be reached with {requests + warmup} requests:"
            f" raise --requests or lower --concurrency"
        )
    if (requests or 0) + warmup > MAX_REQUESTS:
        raise UsageError(f"this load is more than {MAX_REQUESTS} requests in all")
    if arrivals is not None and min(arrivals.expected, requests or math.inf) > MAX_SCHEDULED:
        raise UsageError(f"this schedule is more than {MAX_SCHEDULED:,} requests long")
    if workers is None:
        workers = _default_workers(concurrency)
    if concurrency is not None and workers > concurrency:
        raise UsageError(f"--workers {workers} is more than --concurrency {concurrency}")
    return Load(concurrency, arrivals, requests, duration_s, warmup, workers, trace)


def _cut(
    trace: tuple[Arrival, ...], requests: int | None, duration_s: float | None, warmup: int
) -> tuple[Arrival, ...]:
    """As much of a trace as was asked for."""
    if duration_s is not None:
        trace = tuple(arrival for arrival in trace if arrival.at_s < duration_s)
    if requests is not None:
        trace = trace[: requests + warmup]
    if len(trace) <= warmup:
        raise UsageError(f"--warmup {warmup} leaves nothing of the trace to count")
    return trace


def _arrivals(
    rate: str | None, spacing: str, burstiness: float | None, seed: int, duration_s: float | None
) -> Arrivals | None:
    if rate is None:
        if spacing != "constant" or burstiness is not None:
            raise UsageError("--arrivals and --burstiness belong to an open loop: give --rate")
        return None
    if burstiness is not None:
        if spacing != "gamma":
            raise UsageError("--burstiness belongs to --arrivals gamma")
        if not 0.001 <= burstiness <= 1000:
            raise UsageError(f"--burstiness {burstiness:g} must be between 0.001 and 1000")
    return Arrivals(parse_rate(rate, duration_s), spacing, burstiness or 1.0, seed)


def _default_concurrency(requests: int | None, warmup: int, workers: int | None) -> int:
    """No more streams than there are requests, since nobody asked for them."""
    wanted = max(DEFAULT_CONCURRENCY, workers or 1)
    return wanted if requests is None else min(wanted, requests + warmup)


def _default_workers(concurrency: int | None) -> int:
    """One worker reads some 50,000 events a second; another pays only with a core to run on,
    and half of them are left to whatever else this machine does."""
    wanted = -(-(concurrency or 1) // 256)
    return max(1, min(wanted, len(os.sched_getaffinity(0)) // 2))


def _at_least(option: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise UsageError(f"{option} {value} must be at least {least}")


def check_seconds(option: str, seconds: float) -> None:
    if not 0 < seconds <= MAX_SECONDS:
        raise UsageError(f"{option} {seconds:g} must be greater than 0 and at most {MAX_SECONDS:g}")


@dataclass(frozen=True, slots=True)
class Assignment:
    """All a worker needs to know."""

    worker: int
    folder: str
    mode: str  # of the load: closed or open
    load: Load
    slots: int  # streams this worker keeps open, in closed loop
    due_ns: list[int]  # its part of the schedule, from the start, in open loop
    book: Book
    endpoint: dict[str, Any]
    addresses: list[Any]
    deadlines: Deadlines
    insecure: bool
    kernel_stamps: bool
    keep_alive: bool
    ticket_fd: int | None
    cpu: int | None

    def document(self) -> dict[str, Any]:
        # A trace's times are in `due_ns` and its lengths in the book.
        return asdict(replace(self, load=replace(self.load, trace=())))

    @classmethod
    def of(cls, document: dict[str, Any]) -> Assignment:
        document["load"] = _load_of(document["load"])
        book = document["book"]
        book["rows"] = tuple(Row(**row) for row in book["rows"])
        document["book"] = Book(**book)
        document["deadlines"] = Deadlines(**document["deadlines"])
        return cls(**document)


def _load_of(document: dict[str, Any]) -> Load:
    arrivals = document.pop("arrivals")
    if arrivals is not None:
        arrivals["spans"] = tuple(Span(**span) for span in arrivals["spans"])
        arrivals = Arrivals(**arrivals)
    return Load(**document, arrivals=arrivals)
