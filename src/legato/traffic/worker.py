"""A worker process: its share of the load, its own capture. Nothing here waits on another process
while streams run, and neither numpy nor pyarrow is loaded.

On standard input it is told the length of its assignment and the assignment, then the moment to
start; anything more means stop, and so does the end of input when its parent is gone. On standard
output it answers in JSON lines.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import struct
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from legato.endings import STOPPED
from legato.errors import LegatoError
from legato.traffic.plan import Assignment
from legato.traffic.pulse import PulseFile
from legato.wire import spool
from legato.wire.capture import Capture
from legato.wire.endpoint import Endpoint, Proxy, tls_context

NUMBER = struct.Struct("=Q")  # how lengths and times are written to a worker
PULSE_INTERVAL_NS = 200_000_000
_IDLE_WAIT_NS = 100_000_000
_REST_NS = 100_000_000  # of a slot whose stream never reached the server
_MOST_AWAKE_NS = 2_000_000  # before a scheduled send; a tenth of the interval if that is less


class Worker:
    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        folder = Path(assignment.folder)
        document = dict(assignment.endpoint)
        proxy = document.pop("proxy")
        endpoint = Endpoint(**document, proxy=Proxy(**proxy) if proxy else None)
        self._spool = spool.Spool(folder, assignment.worker)
        self._pulse = PulseFile(folder, assignment.worker)
        self._capture = Capture(
            endpoint,
            [(family, tuple(address)) for family, address in assignment.addresses],
            self._spool,
            deadlines=assignment.deadlines,
            on_end=self._ended,
            tls_context=tls_context(assignment.insecure) if endpoint.tls else None,
            kernel_stamps=assignment.kernel_stamps,
            keep_alive=assignment.keep_alive,
            watch=self._told,
            watch_fd=sys.stdin.fileno(),
        )
        self._started = 0  # streams so far
        self._free: deque[int] = deque()  # free slots, and from when on, in closed loop
        self._due_ns: deque[int] = deque()  # intended times, in open loop
        self._awake_ns = 0  # how long before one of them the loop stops sleeping
        self._deadline_ns: int | None = None
        self._drain_ns: int | None = None
        self._stopped = False

    def run(self, start_ns: int) -> None:
        load = self._assignment.load
        usage = resource.getrusage(resource.RUSAGE_SELF)
        began_ns = time.monotonic_ns()
        if self._assignment.mode == "open":
            due_ns = self._assignment.due_ns
            self._due_ns.extend(start_ns + due for due in due_ns)
            if due_ns:
                self._awake_ns = min(_MOST_AWAKE_NS, due_ns[-1] // len(due_ns) // 10)
        else:
            self._free.extend([0] * self._assignment.slots)
            if load.duration_s is not None:
                self._deadline_ns = start_ns + int(load.duration_s * 1e9)
        next_pulse_ns = began_ns
        while True:
            wait_ns = self._send_due()
            if self._finished():
                break
            self._capture.poll(wait_ns)
            now = time.monotonic_ns()
            if now >= next_pulse_ns:
                self._pulse.publish(self._capture, self._drain_ns is not None)
                next_pulse_ns = now + PULSE_INTERVAL_NS
        self._pulse.publish(self._capture, True)
        self._report(usage, began_ns)

    def _report(self, before: resource.struct_rusage, began_ns: int) -> None:
        after = resource.getrusage(resource.RUSAGE_SELF)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self._spool.append(
            spool.WORKER,
            0,
            {
                "drain_ns": self._drain_ns,
                "cpu_ns": int(seconds * 1e9),
                "wall_ns": time.monotonic_ns() - began_ns,
                "retried": self._capture.counters.retried,
            },
        )
        self._capture.close()

    # --- who sends what when ----------------------------------------------------------------

    def _send_due(self) -> int:
        """Send what is due; returns how long there is nothing to send."""
        if self._assignment.mode == "open":
            return self._send_scheduled()
        # No more than are free now: a stream that fails at once frees its slot inside this loop.
        for _ in range(len(self._free)):
            if self._stopped or self._free[0] > (now := time.monotonic_ns()):
                break
            if not self._draw():
                self._stop_sending()
                break
            self._free.popleft()
            self._send(now)
        until_ns = [self._free[0]] if self._free else []
        if self._deadline_ns is not None:
            until_ns.append(self._deadline_ns)
        if self._stopped or not until_ns:
            return _IDLE_WAIT_NS
        return max(0, min(_IDLE_WAIT_NS, min(until_ns) - time.monotonic_ns()))

    def _send_scheduled(self) -> int:
        while self._due_ns and not self._stopped:
            wait_ns = self._due_ns[0] - time.monotonic_ns()
            if wait_ns > 0:
                # A sleeping process wakes up late: the last moments are spent awake.
                return max(0, wait_ns - self._awake_ns)
            self._send(self._due_ns.popleft())
        self._stop_sending()
        return _IDLE_WAIT_NS

    def _draw(self) -> bool:
        """One more request, by the shared count of those left or by the clock."""
        if self._deadline_ns is not None:
            return time.monotonic_ns() < self._deadline_ns
        assert self._assignment.ticket_fd is not None
        try:
            # A semaphore of the kernel's: it outlives a worker that is killed while drawing.
            os.eventfd_read(self._assignment.ticket_fd)
        except BlockingIOError:
            return False
        return True

    def _send(self, scheduled_ns: int) -> None:
        number = self._started
        self._started += 1
        # Among all workers' requests, so that they do not all send the same prompts.
        of_all = number * self._assignment.load.workers + self._assignment.worker
        self._capture.start(number, self._assignment.book.request(of_all), scheduled_ns)

    def _ended(self, reached: bool) -> None:
        """Its slot is free, or will be soon where the server could not even be reached: a dead
        target is asked again and again, but not as fast as the machine can fail."""
        if self._assignment.mode == "closed":
            self._free.append(0 if reached else time.monotonic_ns() + _REST_NS)

    def _stop_sending(self) -> None:
        self._stopped = True
        if self._drain_ns is None:
            self._drain_ns = time.monotonic_ns()

    def _finished(self) -> bool:
        return self._stopped and self._capture.counters.open == 0

    def _told(self) -> None:
        """Anything on standard input now means: stop, and so does its end."""
        os.read(sys.stdin.fileno(), 4096)
        self._stop_sending()
        self._capture.stop(STOPPED)


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what Ctrl-C means, the parent decides
    raise_file_limit()
    assignment = _assignment()
    if assignment is None:
        return 0
    if assignment.cpu is not None:
        os.sched_setaffinity(0, {assignment.cpu})
    try:
        worker = Worker(assignment)
    except LegatoError as error:
        _tell({"error": str(error)})
        return 1
    gc.collect()
    gc.freeze()
    gc.disable()
    _tell({"ready": True})
    go = _read_exactly(NUMBER.size)
    if len(go) < NUMBER.size:
        return 0
    try:
        worker.run(NUMBER.unpack(go)[0])
    except LegatoError as error:
        # Only the capture can fail here: the disk is full. What was captured stays.
        _tell({"error": str(error)})
        return 1
    return 0


def _assignment() -> Assignment | None:
    """None where the parent has gone before it was told."""
    prefix = _read_exactly(NUMBER.size)
    if len(prefix) < NUMBER.size:
        return None
    (length,) = NUMBER.unpack(prefix)
    document = _read_exactly(length)
    return Assignment.of(json.loads(document)) if len(document) == length else None


def raise_file_limit() -> None:
    """A stream needs a file descriptor, and the usual soft limit is 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _read_exactly(count: int) -> bytes:
    """Unbuffered, so that what follows is left for the loop to see; short when input ends."""
    data = bytearray()
    while len(data) < count and (piece := os.read(sys.stdin.fileno(), count - len(data))):
        data += piece
    return bytes(data)


def _tell(document: dict[str, Any]) -> None:
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    sys.exit(main())
