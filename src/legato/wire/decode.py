"""From the raw capture to streams: events, JSON, token counts and arrival intervals, after the run.

Memory is that of the streams open at one moment, however long the capture is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from legato.apis import Api, Chunk
from legato.endings import WORKER_DIED
from legato.recording import EMPTY, OTHER, USER_CLOCK, Stream
from legato.wire import spool
from legato.wire.clock import Clock
from legato.wire.events import EventTooLongError, JsonLines, ServerSentEvents
from legato.wire.framer import Framer, Head
from legato.wire.redaction import Redaction
from legato.wire.tokens import Tokenizer, count

MAX_ERROR_CHARACTERS = 300
_KEPT_CHARACTERS = 4096  # of a server's words, as far as they are searched for secrets
_KEPT_BODY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Decoding:
    """What decode must know of the run that made the capture."""

    api: Api
    target: str
    model: str
    epoch_offset_ns: int  # wall − monotonic clock when the run began
    workers: int = 1  # of the run, so that stream ids are unique in it
    sampling: str | None = None
    tokenizer: Tokenizer | None = None
    keep_text: bool = False
    redaction: Redaction = field(
        default_factory=Redaction
    )  # what is never repeated, whatever the server sends back


@dataclass(slots=True)
class WorkerFacts:
    """What a worker said of itself, and what its capture says."""

    clock: Clock = field(default_factory=Clock)
    document: dict[str, Any] | None = None  # None when the worker died
    lost_streams: int = 0
    lone_chunks: int = 0
    before_floor: int = 0  # lone chunks stamped earlier than the rule's lower bound allows


def decode_worker(
    folder: Path, worker: int, decoding: Decoding, facts: WorkerFacts
) -> Iterator[Stream]:
    """The streams of one worker's capture; what it says of the clock and itself goes to
    `facts`."""
    open_streams: dict[int, _Response] = {}
    ended: list[_Response] = []
    for record in spool.records(folder, worker):
        if record.kind == spool.READ:
            response = open_streams.get(record.stream)
            if response is not None:
                response.read(record)
        elif record.kind == spool.OPEN:
            open_streams[record.stream] = _Response(
                record.stream, worker, record.document(), decoding
            )
        elif record.kind == spool.END:
            response = open_streams.pop(record.stream)
            response.end(record.document())
            ended.append(response)
        elif record.kind == spool.ANCHOR:
            # A stamp is judged by the anchors on both its sides, so a stream waits for the next.
            facts.clock.add(record.anchor())
            for response in ended:
                yield response.stream(facts)
            ended.clear()
        elif record.kind == spool.WORKER:
            facts.document = record.document()
    for response in ended:
        yield response.stream(facts)
    for response in open_streams.values():
        facts.lost_streams += 1
        response.end({"status": "aborted", "error": WORKER_DIED})
        yield response.stream(facts)


class _Response:
    """One response as it comes out of the capture."""

    def __init__(
        self, number: int, worker: int, opened: dict[str, Any], decoding: Decoding
    ) -> None:
        self._number = number
        self._worker = worker
        self._opened = opened
        self._ended: dict[str, Any] = {}
        self._decoding = decoding
        self._spans: list[tuple[int, int]] = []
        self._framer = Framer(self._spans)
        self._events = JsonLines() if decoding.api.ndjson else ServerSentEvents()
        self._streams: bool | None = None  # None until the head is there
        self._body = b""
        self._problem = ""
        # per read
        self._stamp_ns: list[int] = []
        self._read_ns: list[int] = []
        self._floor_ns: list[int] = []
        self._whole: list[bool] = []  # the read ends where its last event does
        self._left_behind: list[bool] = []  # it filled its buffer
        self._settling: list[tuple[int, bool]] = []  # segments, and whether it held any of this
        # per chunk
        self._chunks: list[Chunk] = []
        self._chunk_read: list[int] = []

    def read(self, record: spool.Record) -> None:
        held = record.end > record.start
        self._settling.append((record.segments, held))
        if not held:
            return  # TLS that held no plaintext: a session ticket, the start of a record
        self._spans.clear()
        self._framer.feed(record.buffer, record.start, record.end)
        index = len(self._read_ns)
        self._stamp_ns.append(record.stamp_ns)
        self._read_ns.append(record.read_ns)
        self._floor_ns.append(record.floor_ns)
        self._left_behind.append(record.flags & spool.LEFT_BEHIND != 0)
        spans = self._spans
        if not spans:
            self._whole.append(False)
            return
        if len(spans) == 1:
            data = record.buffer[spans[0][0] : spans[0][1]]
        else:
            data = b"".join(record.buffer[start:end] for start, end in spans)
        if self._streams is None:
            self._streams = _streams(self._framer.head, self._decoding.api)
        if self._streams:
            self._add(self._split(data), index)
        elif len(self._body) < _KEPT_BODY_BYTES:
            self._body += data
        # Past the last event only its HTTP chunk's line end may follow, and no part of a record.
        self._whole.append(
            self._events.ended and record.end - spans[-1][1] <= 2 and not record.flags
        )

    def end(self, document: dict[str, Any]) -> None:
        self._ended = document
        if document["status"] == "ok":
            self._add(self._events.finish(), len(self._read_ns) - 1)

    def stream(self, facts: WorkerFacts) -> Stream:
        opened, ended, decoding = self._opened, self._ended, self._decoding
        sent_ns = opened.get("sent_ns")
        epoch_ns = decoding.epoch_offset_ns
        status, error = self._outcome()
        read_ns = np.asarray(self._read_ns, np.int64)
        arrived_ns, holds = facts.clock.monotonic(np.asarray(self._stamp_ns, np.int64), read_ns)
        last_ns = int(arrived_ns[-1]) if len(arrived_ns) else opened["scheduled_ns"]
        ended_ns = last_ns if ended["status"] == "ok" else ended.get("ended_ns", last_ns)
        counts = count(self._chunks, decoding.tokenizer)
        head = self._framer.head
        stream = Stream(
            stream_id=self._number * decoding.workers + self._worker,
            worker=self._worker,
            target=decoding.target,
            model=decoding.model,
            api=decoding.api.name,
            scheduled_ns=opened["scheduled_ns"] + epoch_ns,
            sent_ns=None if sent_ns is None else sent_ns + epoch_ns,
            first_byte_ns=int(arrived_ns[0]) + epoch_ns if len(arrived_ns) else None,
            ended_ns=ended_ns + epoch_ns,
            reused=opened.get("reused", False),
            connect_ns=opened.get("connect_ns"),
            tls_ns=opened.get("tls_ns"),
            idle_before_ns=opened.get("idle_before_ns"),
            remote_addr=opened.get("remote_addr"),
            retransmits=ended.get("retransmits"),
            rtt_us=ended.get("rtt_us"),
            status=status,
            error=error,
            http_status=None if head is None else head.status,
            retry_after=self._without_secrets(
                None if head is None else head.fields.get("retry-after")
            ),
            response_id=self._without_secrets(self._last("response_id")),
            prompt_tokens=self._last("prompt_tokens"),
            output_tokens=self._last("output_tokens"),
            cached_tokens=self._last("cached_tokens"),
            token_source=counts.source,
            tokens=counts.tokens,
            text_tokens=counts.text_tokens,
            retokens=counts.retokens,
            sampling=decoding.sampling,
            kind=[chunk.kind for chunk in self._chunks],
            text=self._texts() if decoding.keep_text else None,
        )
        self._place(stream, arrived_ns, holds, sent_ns or 0, facts)
        return stream

    def _place(
        self, stream: Stream, arrived_ns: Any, holds: Any, sent_ns: int, facts: WorkerFacts
    ) -> None:
        """Per chunk: when it came, how much earlier it may have come, with what."""
        index = np.asarray(self._chunk_read, np.int64)
        segments = np.asarray(_settled(self._settling), np.int64)
        read_ns = np.asarray(self._read_ns, np.int64)
        # No byte of a read came before the last byte of the read before it, by the kernel's word:
        # the clock after a read may be later than what came meanwhile, and a read that filled its
        # buffer has the stamp of bytes that it left to the next.
        stamped_ns = np.where(holds & ~np.asarray(self._left_behind, bool), arrived_ns, 0)
        floor_ns = np.maximum(
            np.asarray(self._floor_ns, np.int64), np.concatenate([[sent_ns], stamped_ns[:-1]])
        )
        lone = np.bincount(index, minlength=len(read_ns)) == 1
        lone &= holds & (segments == 1)
        facts.lone_chunks += int(lone.sum())
        facts.before_floor += int((arrived_ns < np.asarray(self._floor_ns))[lone].sum())
        last_of_read = np.append(index[1:] != index[:-1], True)
        exact = (segments[index] == 1) | (last_of_read & np.asarray(self._whole, bool)[index])
        exact &= holds[index]
        early_ns = np.where(exact, 0, np.maximum(arrived_ns - floor_ns, 0)[index])
        stream.arrival_ns = arrived_ns[index] - sent_ns
        stream.lag_ns = (read_ns - arrived_ns)[index]
        stream.early_ns = early_ns
        stream.read_index = index
        stream.segments = segments[index]
        flags = np.asarray([chunk.flags for chunk in self._chunks], np.int64)
        stream.flags = flags | np.where(holds[index], 0, USER_CLOCK)

    # --- the body ---------------------------------------------------------------------------

    def _split(self, data: bytes) -> list[bytes]:
        try:
            return self._events.feed(data)
        except EventTooLongError:
            self._problem = self._problem or "an event is longer than 64 MiB"
            return []

    def _add(self, events: list[bytes], index: int) -> None:
        decode = self._decoding.api.decode
        for event in events:
            try:
                chunk = decode(event)
            except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
                chunk = Chunk(OTHER, EMPTY)
                self._problem = (
                    self._problem or f"event {len(self._chunks) + 1} is not a chunk of this API"
                )
            self._chunks.append(chunk)
            self._chunk_read.append(index)

    def _last(self, name: str) -> Any:
        found = (getattr(chunk, name) for chunk in reversed(self._chunks))
        return next((value for value in found if value is not None), None)

    def _texts(self) -> list[str]:
        return [self._decoding.redaction.apply(chunk.text) for chunk in self._chunks]

    # --- how it ended -----------------------------------------------------------------------

    def _outcome(self) -> tuple[str, str | None]:
        status, error = self._verdict()
        error = self._without_secrets(error)
        return status, error and error[:MAX_ERROR_CHARACTERS]

    def _without_secrets(self, text: str | None) -> str | None:
        """A server's own words, fit to be kept."""
        if text is not None:
            # JSON can spell half of a surrogate pair, which nothing that stores text can hold.
            text = text.encode("utf-8", "replace").decode()
            text = self._decoding.redaction.apply(text[:_KEPT_CHARACTERS])
        return text

    def _verdict(self) -> tuple[str, str | None]:
        status: str = self._ended["status"]
        head = self._framer.head
        if status != "ok" or head is None:
            return status, self._ended.get("error")
        if head.status != 200:
            return "http_error", f"HTTP {head.status}: {_message(self._body)}"
        encoding = head.fields.get("content-encoding", "identity").lower()
        if encoding != "identity":
            return "protocol_error", f"the body is compressed ({encoding}) though none was asked"
        api = self._decoding.api
        if not _streams(head, api):
            kind = head.fields.get("content-type", "no content type")
            return "not_streaming", f"the answer came whole, as {kind}"
        failed = next((chunk.error for chunk in self._chunks if chunk.error), None)
        if failed:
            return "aborted", f"the server reported inside the stream: {failed}"
        if self._problem:
            return "protocol_error", self._problem
        if api.end and not any(chunk.terminal or chunk.finish_reason for chunk in self._chunks):
            return "aborted", f"the stream ended without {api.end}"
        return "ok", None


def _streams(head: Head | None, api: Api) -> bool:
    return (
        head is not None
        and head.status == 200
        and api.streams(head.fields.get("content-type", ""))
        and head.fields.get("content-encoding", "identity").lower() == "identity"
    )


def _settled(reads: list[tuple[int, bool]]) -> list[int]:
    """Segments per read that held something. A read during which more arrived is recorded as 0
    and the next settled one carries the sum: where it equals the number of reads each had one,
    otherwise any of them may have had the surplus, and all are taken to."""
    result: list[int] = []
    waiting = holding = 0
    for number, held in reads:
        waiting += 1
        holding += held
        if number:
            result += [max(1, number - waiting + 1)] * holding
            waiting = holding = 0
    return result + [2] * holding


def _message(body: bytes) -> str:
    """The sentence in an error body."""
    try:
        document = json.loads(body)
        error = document.get("error", document)
        text = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    except (ValueError, AttributeError, RecursionError):
        text = None
    return str(text) if text else body.decode("utf-8", "replace").strip() or "no body"
