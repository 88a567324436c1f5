"""Runs a load: starts the workers, shows how they do, stops them, and turns what they captured
into a recording. While streams run it only watches."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from legato.errors import RecordingError, UsageError
from legato.report.live import LiveView, Snapshot
from legato.traffic.plan import Assignment, Load
from legato.traffic.pulse import PulseFile
from legato.traffic.worker import NUMBER
from legato.wire.sketch import Sketch

_READY_TIMEOUT_S = 30.0
_LEAD_NS = 20_000_000  # between `go` and the start, so that all workers start together
_WATCH_S = 0.05
_DESCRIPTORS_BESIDE_STREAMS = 16
_FREE_BYTES_A_WORKER = 64 * 1024 * 1024


@dataclass(slots=True)
class Outcome:
    """How the load ended."""

    started_ns: int = 0  # monotonic
    ended_ns: int = 0
    interrupted: bool = False
    errors: list[str] = field(default_factory=list)  # what workers said before they gave up


def check_disk(folder: Path, workers: int) -> None:
    """Told before the load starts where it can be known."""
    try:
        found = os.statvfs(folder)
    except OSError as error:
        raise RecordingError(f"cannot write to {folder}: {error.strerror}") from None
    free = found.f_bavail * found.f_frsize
    if free < workers * _FREE_BYTES_A_WORKER:
        raise RecordingError(
            f"{folder} has {free // 2**20} MiB free; a run needs"
            f" {workers * _FREE_BYTES_A_WORKER // 2**20} MiB to start"
        )


def check_descriptors(load: Load) -> None:
    """Every stream needs a file descriptor; a worker may raise its limit to the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max(slots(load)) + _DESCRIPTORS_BESIDE_STREAMS
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise UsageError(
            f"{max(slots(load))} streams a worker need {needed} file descriptors and the limit is"
            f" {hard}: raise it (ulimit -n), or use more --workers or fewer streams"
        )


@contextlib.contextmanager
def tickets(load: Load) -> Iterator[int | None]:
    """The shared count of requests left, in closed loop by number: a semaphore of the kernel's,
    from which each worker draws without waiting for another."""
    if load.mode != "closed" or load.total is None:
        yield None
        return
    descriptor = os.eventfd(load.total, os.EFD_SEMAPHORE | os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def slots(load: Load) -> list[int]:
    """The streams each worker keeps open."""
    total = load.concurrency or 0
    return [total // load.workers + (w < total % load.workers) for w in range(load.workers)]


class Runner:
    """The workers of one run."""

    def __init__(self, folder: Path, load: Load, assignments: list[Assignment]) -> None:
        self._folder = folder
        self._load = load
        self._assignments = assignments
        self._processes: list[subprocess.Popen[bytes]] = []
        self._outcome = Outcome()

    def run(self, view: LiveView) -> Outcome:
        """Until the workers are done; the first Ctrl-C stops sending and cuts open streams, a
        second one ends the workers at once. Before anything was sent, it is the caller's."""
        outcome = self._outcome
        try:
            self._spawn()
            outcome.started_ns = time.monotonic_ns() + _LEAD_NS
            for process in self._processes:
                self._write(process, NUMBER.pack(outcome.started_ns))
            self._watch(view)
        except KeyboardInterrupt:
            self._stop()
            if not outcome.started_ns:
                raise
            outcome.interrupted = True
        finally:
            for process in self._processes:
                process.kill()
                process.wait()
            outcome.ended_ns = time.monotonic_ns()
        outcome.errors += [line for p in self._processes if (line := _said_error(p))]
        return outcome

    def _spawn(self) -> None:
        for assignment in self._assignments:
            fds = () if assignment.ticket_fd is None else (assignment.ticket_fd,)
            process = subprocess.Popen(
                [sys.executable, "-m", "legato.traffic.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=fds,
                bufsize=0,
                # Ctrl-C at a terminal goes to the parent's group: it decides what it means.
                process_group=0,
            )
            self._processes.append(process)
            document = json.dumps(assignment.document()).encode()
            self._write(process, NUMBER.pack(len(document)) + document)
        for process in self._processes:
            self._await_ready(process)

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _READY_TIMEOUT_S)
        line = process.stdout.readline() if ready else b""
        document = json.loads(line) if line else {"error": "a worker did not start"}
        if "error" in document:
            raise RecordingError(document["error"])

    def _write(self, process: subprocess.Popen[bytes], data: bytes) -> None:
        assert process.stdin is not None
        remaining = memoryview(data)
        with contextlib.suppress(BrokenPipeError):  # it died: its capture will say so
            while remaining:
                remaining = remaining[process.stdin.write(remaining) :]

    def _watch(self, view: LiveView) -> None:
        pulses = [PulseFile(self._folder, a.worker) for a in self._assignments]
        scheduled = sum(len(assignment.due_ns) for assignment in self._assignments)
        total = self._load.total or scheduled or None
        meter = _Meter(self._load, total, pulses, self._outcome.started_ns)
        while any(process.poll() is None for process in self._processes):
            if view.shown:
                view.update(meter.snapshot())
            time.sleep(_WATCH_S)

    def _stop(self) -> None:
        """Closing a worker's input tells it to stop; it needs a moment to write that down."""
        try:
            for process in self._processes:
                assert process.stdin is not None
                process.stdin.close()
            for process in self._processes:
                process.wait(timeout=10)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            pass


def _said_error(process: subprocess.Popen[bytes]) -> str | None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout.read().splitlines():
            with contextlib.suppress(ValueError):
                error: str | None = json.loads(line).get("error")
                if error:
                    return error
    return None


class _Meter:
    """Adds the workers' pulses into what the live view shows."""

    def __init__(
        self, load: Load, total: int | None, pulses: list[PulseFile], started_ns: int
    ) -> None:
        self._load = load
        self._total = total
        self._pulses = pulses
        self._started_ns = started_ns
        self._last: tuple[int, int] = (started_ns, 0)  # when, and how many reads by then
        self._events_per_s = 0.0

    def snapshot(self) -> Snapshot:
        gaps, lags = Sketch(), Sketch()
        opened = done = failed = reads = 0
        draining = False
        for file in self._pulses:
            pulse, worker_gaps, worker_lags = file.read()
            gaps.add(worker_gaps)
            lags.add(worker_lags)
            opened, done = opened + pulse.open, done + pulse.done
            failed, reads = failed + pulse.failed, reads + pulse.reads
            draining |= pulse.draining
        now = time.monotonic_ns()
        then, before = self._last
        if now - then > 500_000_000:
            self._events_per_s = (reads - before) * 1e9 / (now - then)
            self._last = (now, reads)
        phase = "draining" if draining else "measuring"
        return Snapshot(
            elapsed_s=max(0.0, (now - self._started_ns) / 1e9),
            open_streams=opened,
            asked_streams=self._load.concurrency,
            done=done,
            total=self._total,
            events_per_s=self._events_per_s,
            gap_p50_ms=_ms(gaps.quantile_ns(0.5)),
            gap_p99_ms=_ms(gaps.quantile_ns(0.99)),
            errors=failed,
            lag_p99_ms=_ms(lags.quantile_ns(0.99)),
            phase="warm-up" if done < self._load.warmup else phase,
        )


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


Assign = Callable[[int | None], list[Assignment]]


def run(folder: Path, load: Load, assign: Assign, view: LiveView) -> Outcome:
    """Run `load` into `folder`; `assign` makes the workers' assignments, given the tickets."""
    with tickets(load) as descriptor:
        return Runner(folder, load, assign(descriptor)).run(view)
