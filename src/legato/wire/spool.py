"""The capture as it is written while streams run: records appended through a memory map.

What is in the map survives a `kill -9` of the writer without a single write call, the kernel
receives straight into it, and memory stays bounded because a segment is unmapped when it is full.
A record's header ends with a check word that is written last: a torn record is no record. The
spool holds answers, so its files are readable by their owner only.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from legato.errors import RecordingError
from legato.stamps import Anchor

SEGMENT_BYTES = 32 * 1024 * 1024
READ_BYTES = 64 * 1024  # the most one read may bring

READ, OPEN, END, ANCHOR, WORKER = 1, 2, 3, 4, 5
# Of a read, in the upper byte of its kind:
LEFT_BEHIND = 0x100  # it filled its buffer: bytes that had come before it may still be unread
INSIDE_RECORD = 0x200  # it ended inside a TLS record, whose start is in no event yet
_KIND_BITS = 0xFF

# kind, segments, stream, length of what follows, wall-clock stamp, time after the read,
# earliest the oldest byte may have come, check
_HEADER = struct.Struct("=HHIIqqqI")
HEADER_BYTES = _HEADER.size
CHECK = 0x1E6A70FF
_pack_into = _HEADER.pack_into


class Spool:
    """Appends records. `map` and `position` are the hot path's: it receives into
    `map[position + HEADER_BYTES :]` and then calls `commit_read`."""

    def __init__(self, folder: Path, worker: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._worker = worker
        self._segment_bytes = segment_bytes
        self._index = 0
        self._open_segment()

    def _open_segment(self) -> None:
        self._path = self._folder / f"worker-{self._worker:03d}-{self._index:05d}.spool"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        try:
            handle = os.open(self._path, flags, 0o600)
            try:
                # Reserved now, so that a full disk is an error here and not a bus error later.
                os.posix_fallocate(handle, 0, self._segment_bytes)
                self.map = mmap.mmap(handle, self._segment_bytes)
            finally:
                os.close(handle)
        except OSError as error:
            self._path.unlink(missing_ok=True)
            raise RecordingError(f"cannot write {self._path}: {error.strerror}") from error
        self.view = memoryview(self.map)
        self.position = 0
        self._index += 1

    def room(self) -> None:
        """Make sure one more read fits; called before each."""
        if self.position + 2 * HEADER_BYTES + READ_BYTES > self._segment_bytes:
            self._close_segment()
            self._open_segment()

    def commit_read(
        self,
        stream: int,
        length: int,
        segments: int,
        stamp_ns: int,
        read_ns: int,
        floor_ns: int,
        flags: int = 0,
    ) -> None:
        position = self.position
        _pack_into(
            self.map,
            position,
            READ | flags,
            segments if segments < 65536 else 65535,
            stream,
            length,
            stamp_ns,
            read_ns,
            floor_ns,
            CHECK,
        )
        self.position = position + HEADER_BYTES + length

    def append(self, kind: int, stream: int, document: dict[str, Any]) -> None:
        """A record that is not a read: JSON, once or twice a stream."""
        data = json.dumps(document, separators=(",", ":")).encode()
        self.room()
        start = self.position + HEADER_BYTES
        self.map[start : start + len(data)] = data
        _pack_into(self.map, self.position, kind, 0, stream, len(data), 0, 0, 0, CHECK)
        self.position = start + len(data)

    def append_anchor(self, anchor: Anchor) -> None:
        self.room()
        _pack_into(
            self.map,
            self.position,
            ANCHOR,
            0,
            0,
            0,
            anchor.offset_ns,
            anchor.at_ns,
            anchor.width_ns,
            CHECK,
        )
        self.position += HEADER_BYTES

    def _close_segment(self) -> None:
        self.view.release()
        self.map.close()
        os.truncate(self._path, self.position)

    def close(self) -> None:
        self._close_segment()


class Record(NamedTuple):
    """One record; the payload is `buffer[start:end]`. A tuple, since decode makes millions."""

    kind: int
    flags: int
    stream: int
    segments: int
    stamp_ns: int
    read_ns: int
    floor_ns: int
    buffer: bytes | mmap.mmap
    start: int
    end: int

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.buffer[self.start : self.end])
        return document

    def anchor(self) -> Anchor:
        return Anchor(self.read_ns, self.stamp_ns, self.floor_ns)


def workers(folder: Path) -> list[int]:
    """The workers that left a capture in `folder`."""
    return sorted({int(path.name.split("-")[1]) for path in folder.glob("worker-*.spool")})


def records(folder: Path, worker: int) -> Iterator[Record]:
    """A worker's records in order; stops a segment where its last whole record ends."""
    for path in sorted(folder.glob(f"worker-{worker:03d}-*.spool")):
        size = path.stat().st_size
        if size < HEADER_BYTES:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from _segment_records(data, size)


def _segment_records(data: mmap.mmap, size: int) -> Iterator[Record]:
    position = 0
    unpack = _HEADER.unpack_from
    while position + HEADER_BYTES <= size:
        kind, segments, stream, length, stamp, read, floor, check = unpack(data, position)
        start = position + HEADER_BYTES
        if check != CHECK or start + length > size:
            return
        flags = kind & ~_KIND_BITS
        kind &= _KIND_BITS
        yield Record(kind, flags, stream, segments, stamp, read, floor, data, start, start + length)
        position = start + length


def remove(folder: Path) -> None:
    """Delete the raw capture once it is decoded."""
    for path in folder.glob("worker-*.spool"):
        path.unlink()
