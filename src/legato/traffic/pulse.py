"""What a worker shows of itself while it runs: counters and sketches in a small shared file, so
that watching costs the measurement nothing."""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from legato.errors import RecordingError
from legato.wire import sketch
from legato.wire.capture import Capture
from legato.wire.sketch import Sketch

_COUNTERS = struct.Struct("=6Q")
_BYTES = _COUNTERS.size + 2 * sketch.BYTES


@dataclass(slots=True)
class Pulse:
    open: int = 0
    done: int = 0
    failed: int = 0
    reads: int = 0
    retried: int = 0
    draining: bool = False


class PulseFile:
    """One worker's pulse; the worker writes, the parent reads."""

    def __init__(self, folder: Path, worker: int) -> None:
        path = folder / f"worker-{worker:03d}.pulse"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                # Reserved now, so that a full disk is an error here and not a bus error later.
                os.posix_fallocate(handle, 0, _BYTES)
                self._view = memoryview(mmap.mmap(handle, _BYTES))
            finally:
                os.close(handle)
        except OSError as error:
            raise RecordingError(f"cannot write {path}: {error.strerror}") from error

    def publish(self, capture: Capture, draining: bool) -> None:
        c = capture.counters
        _COUNTERS.pack_into(self._view, 0, c.open, c.done, c.failed, c.reads, c.retried, draining)
        capture.gaps.pack_into(self._view, _COUNTERS.size)
        capture.lags.pack_into(self._view, _COUNTERS.size + sketch.BYTES)

    def read(self) -> tuple[Pulse, Sketch, Sketch]:
        opened, done, failed, reads, retried, draining = _COUNTERS.unpack_from(self._view, 0)
        gaps = Sketch.unpack_from(self._view, _COUNTERS.size)
        lags = Sketch.unpack_from(self._view, _COUNTERS.size + sketch.BYTES)
        return Pulse(opened, done, failed, reads, retried, bool(draining)), gaps, lags
