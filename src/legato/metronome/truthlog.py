"""The writer of the truth log: append-only, through a memory map of space already allocated.

What is in the map belongs to the kernel, so that no way of ending the process loses a record,
and a full disk is met when space is allocated, never by a record.
"""

from __future__ import annotations

import math
import mmap
import os
from pathlib import Path

from legato import stamps
from legato.errors import LegatoError, UsageError
from legato.metronome.truth import (
    END,
    EVENT,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    PIECE,
    RECORD,
    REQUEST,
    VERSION,
)

# A window holds whole records and starts on a page.
WINDOW_BYTES = math.lcm(RECORD.size, HEADER_BYTES) * 100

_pack_into = RECORD.pack_into
_SIZE = RECORD.size


class TruthLog:
    """Appends records to a file that it maps a window at a time."""

    __slots__ = ("_at", "_file", "_next", "_start", "_window", "path")

    def __init__(self, path: Path, run: str) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(f"cannot write the truth log {path}: {error.strerror}") from error
        offset = stamps.anchor().offset_ns
        header = HEADER.pack(MAGIC, VERSION, _SIZE, run.encode(), offset)
        os.pwrite(self._file, header, 0)
        self._start = HEADER_BYTES
        self._window = self._mapped(self._start)
        self._next: mmap.mmap | None = None
        self._at = 0

    def request(
        self, stream: int, received_ns: int, prompt_tokens: int, api: int, by_kernel: bool
    ) -> None:
        self._room()
        _pack_into(
            self._window, self._at, received_ns, prompt_tokens, by_kernel, stream, 0, 0, 0, api,
            REQUEST,
        )  # fmt: skip
        self._at += _SIZE

    def event(
        self,
        stream: int,
        index: int,
        write: int,
        kind: int,
        tokens: int,
        before_ns: int,
        after_ns: int,
        deadline_ns: int,
    ) -> None:
        at = self._at
        if at == WINDOW_BYTES:
            self._turn()
            at = 0
        _pack_into(
            self._window, at, before_ns, after_ns, deadline_ns, stream, index, write, tokens, kind,
            EVENT,
        )  # fmt: skip
        self._at = at + _SIZE

    def piece(
        self, stream: int, write: int, before_ns: int, after_ns: int, deadline_ns: int
    ) -> None:
        """A write that completed no event."""
        self._room()
        _pack_into(
            self._window, self._at, before_ns, after_ns, deadline_ns, stream, 0, write, 0, 0, PIECE
        )
        self._at += _SIZE

    def end(self, stream: int, ended_ns: int, events: int, reason: int) -> None:
        self._room()
        _pack_into(self._window, self._at, ended_ns, 0, 0, stream, events, 0, 0, reason, END)
        self._at += _SIZE

    def prepare(self) -> None:
        """Allocate the next window ahead; to be called when there is time."""
        if self._next is None and self._at > WINDOW_BYTES // 2:
            self._next = self._mapped(self._start + WINDOW_BYTES)

    def close(self) -> None:
        """Give back the space that was allocated ahead."""
        end = self._start + self._at
        self._window.close()
        if self._next is not None:
            self._next.close()
        os.ftruncate(self._file, end)
        os.close(self._file)

    def _room(self) -> None:
        if self._at == WINDOW_BYTES:
            self._turn()

    def _turn(self) -> None:
        fresh = self._next or self._mapped(self._start + WINDOW_BYTES)
        self._window.close()
        self._window, self._next = fresh, None
        self._start += WINDOW_BYTES
        self._at = 0

    def _mapped(self, start: int) -> mmap.mmap:
        try:
            os.posix_fallocate(self._file, start, WINDOW_BYTES)
            return mmap.mmap(self._file, WINDOW_BYTES, offset=start)
        except OSError as error:
            raise LegatoError(f"the truth log {self.path} ends: {error.strerror}") from error
