"""A run as it was asked for, checked: what `legato bench` and every command that sends load
build, and what a worker is told."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

from legato.errors import UsageError
from legato.wire.deadlines import Deadlines

DEFAULT_CONCURRENCY = 10
DEFAULT_REQUESTS_A_SLOT = 10
MAX_REQUESTS = 2**32 - 1  # what the kernel's counter holds at first
MAX_RATE = 1e9
MAX_SECONDS = 1e8  # three years: its nanoseconds fit wherever times are kept


@dataclass(frozen=True, slots=True)
class Load:
    """How much is sent when: a number of streams kept open, or requests at a constant rate."""

    concurrency: int | None = None
    rate: float | None = None
    requests: int | None = None
    duration_s: float | None = None
    warmup: int = 0
    workers: int = 1

    @property
    def mode(self) -> str:
        return "open" if self.rate is not None else "closed"

    @property
    def total(self) -> int | None:
        """Requests in all, warm-up included; None when time decides."""
        if self.requests is not None:
            return self.requests + self.warmup
        if self.rate is not None and self.duration_s is not None:
            return max(1, round(self.rate * self.duration_s)) + self.warmup
        return None


def check_load(
    *,
    concurrency: int | None,
    rate: float | None,
    requests: int | None,
    duration_s: float | None,
    warmup: int,
    workers: int | None,
) -> Load:
    """The load with its defaults filled in; contradictions are refused."""
    if concurrency is not None and rate is not None:
        raise UsageError("--concurrency and --rate contradict each other: choose one")
    if requests is not None and duration_s is not None:
        raise UsageError("--requests and --duration contradict each other: choose one")
    _at_least("--concurrency", concurrency, 1)
    _at_least("--requests", requests, 1)
    _at_least("--workers", workers, 1)
    _at_least("--warmup", warmup, 0)
    if rate is not None and not 0 < rate <= MAX_RATE:
        raise UsageError(f"--rate {rate:g} must be greater than 0 and at most {MAX_RATE:g}")
    if duration_s is not None:
        check_seconds("--duration", duration_s)
    if rate is None and concurrency is None:
        concurrency = DEFAULT_CONCURRENCY
    if requests is None and duration_s is None:
        requests = DEFAULT_REQUESTS_A_SLOT * concurrency if concurrency else 100
    if concurrency is not None and requests is not None and requests + warmup < concurrency:
        raise UsageError(
            f"--concurrency {concurrency} can never be reached with {requests + warmup} requests:"
            f" raise --requests or lower --concurrency"
        )
    if (Load(concurrency, rate, requests, duration_s, warmup).total or 0) > MAX_REQUESTS:
        raise UsageError(f"this load is more than {MAX_REQUESTS} requests in all")
    if workers is None:
        workers = _default_workers(concurrency)
    if concurrency is not None and workers > concurrency:
        raise UsageError(f"--workers {workers} is more than --concurrency {concurrency}")
    return Load(concurrency, rate, requests, duration_s, warmup, workers)


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
class Request:
    """A request in pieces: everything before the prompt, everything after it, as JSON bytes, and
    the HTTP head without its Content-Length. The head holds the key: it goes to the workers
    through a pipe and nowhere else."""

    head: str = field(repr=False)
    before: str
    after: str
    prompts: list[str] = field(repr=False)
    salt_seed: int | None  # None: the prompts go out as they are


@dataclass(frozen=True, slots=True)
class Assignment:
    """All a worker needs to know."""

    worker: int
    folder: str
    load: Load
    slots: int  # streams this worker keeps open, in closed loop
    request: Request
    endpoint: dict[str, Any]
    addresses: list[Any]
    deadlines: Deadlines
    insecure: bool
    kernel_stamps: bool
    keep_alive: bool
    ticket_fd: int | None
    cpu: int | None

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, document: dict[str, Any]) -> Assignment:
        document["load"] = Load(**document["load"])
        document["request"] = Request(**document["request"])
        document["deadlines"] = Deadlines(**document["deadlines"])
        return cls(**document)
