"""The score of one answer: its writes in order, each with the wait before it.

A generator, resumed after each write, so that a gap can depend on what is open at that moment.
It reads no clock and touches no socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from legato.metronome import envelope, fault
from legato.metronome.ask import Ask
from legato.metronome.note import CLOSE, END, GO, Note, Piece, cut, joined
from legato.metronome.pace import NS_PER_MS, Room, first_token_ns, gap_before
from legato.metronome.payload import Voice
from legato.metronome.truth import CONTENT, DONE, FINISH, REASONING, ROLE, TOOL, USAGE

_ONE_TOKEN = ((CONTENT, 1),)
_MOST_TOKENS_LOGGED = 65535


class Span(NamedTuple):
    """The tokens of one event."""

    kind: int
    first: int
    size: int


def score(ask: Ask, voice: Voice, number: int, room: Room, *, keep_alive: bool) -> Iterator[Note]:
    """The writes that answer a request."""
    pattern = ask.pattern
    name = pattern.fault if (number + 1) % pattern.fault_every == 0 else "none"
    delay_ns = first_token_ns(pattern, number, ask.prompt_tokens)
    if name in fault.INSTEAD:
        return fault.instead(name, pattern, delay_ns, keep_alive=keep_alive)
    gap = gap_before(pattern, number, ask.prompt_tokens, room)
    if not ask.stream or name == "wrong_type":
        return _in_one_piece(ask, voice, delay_ns, gap, keep_alive=keep_alive)
    lead = envelope.stream_head(pattern, keep_alive=keep_alive)
    struck_at = fault.position(pattern, ask.tokens) if name in fault.DURING else ask.tokens
    answer = _Answer(ask, voice, room, gap, envelope.event(pattern), name, struck_at)
    notes = _streamed(answer, delay_ns, lead)
    return _ending_in_terminators(notes) if pattern.terminators else notes


def spans(ask: Ask) -> Iterator[Span]:
    """How the answer's tokens lie in events: reasoning, then content, then a tool call."""
    pattern = ask.pattern
    tool_from = ask.tokens - min(pattern.tool_tokens, ask.tokens)
    content_from = min(pattern.reasoning_tokens, tool_from)
    parts = (
        (REASONING, 0, content_from),
        (CONTENT, content_from, tool_from),
        (TOOL, tool_from, ask.tokens),
    )
    step = pattern.tokens_per_event
    return chain.from_iterable(_cut_in_events(*part, step) for part in parts)


def _cut_in_events(kind: int, start: int, end: int, step: int) -> Iterator[Span]:
    return (Span(kind, at, min(step, end - at)) for at in range(start, end, step))


def _in_one_piece(
    ask: Ask, voice: Voice, delay_ns: int, gap: Callable[[int], int], *, keep_alive: bool
) -> Iterator[Note]:
    """No stream: the answer when its last token would have come."""
    yield Note(delay_ns, b"", ())
    for position in range(1, ask.tokens):
        yield Note(gap(position), b"", ())
    data = envelope.whole(200, voice.whole(), keep_alive=keep_alive)
    yield Note(0, data, ((CONTENT, min(ask.tokens, _MOST_TOKENS_LOGGED)),), END)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the functions below share of one streamed answer."""

    ask: Ask
    voice: Voice
    room: Room
    gap: Callable[[int], int]
    wrap: Callable[[bytes], bytes]
    fault: str
    struck_at: int  # the token at which the fault strikes; past the last where none does

    @property
    def apart(self) -> bool:
        """Whether each event is cut into two writes of its own."""
        return self.ask.pattern.split == "writes"

    @property
    def is_plain(self) -> bool:
        """Whether all events between the first token's and the last's are one content token."""
        pattern = self.ask.pattern
        return (
            not self.ask.token_ids
            and not self.ask.logprobs
            and pattern.split == "none"
            and pattern.tokens_per_event == pattern.events_per_write == 1
            and not pattern.reasoning_tokens
            and not pattern.tool_tokens
            and self.fault not in fault.DURING
        )


def _streamed(answer: _Answer, delay_ns: int, lead: bytes) -> Iterator[Note]:
    """The stream: the head, the role, the tokens in batches of a write each, the ending."""
    ask, struck_at, is_plain = answer.ask, answer.struck_at, answer.is_plain
    start = [_piece(answer, answer.voice.role(), ROLE)] if ask.api == "chat" else []
    if ask.pattern.role_early:
        yield from _write(answer, 0, lead, start)
        lead, start = b"", []

    wait_ns, previous = delay_ns, 0
    for batch in _batches(answer):
        first, last = batch[0].first, batch[-1].first + batch[-1].size - 1
        if is_plain and first > 1:
            yield from _plain_tokens(answer, 1, first)
            previous = first - 1
        if previous < first:
            wait_ns = sum([answer.gap(position) for position in range(previous + 1, first + 1)])
        previous = first
        pieces = start + _token_pieces(answer, batch)
        if first <= struck_at <= last:
            for note in fault.during(answer.fault, ask.pattern, wait_ns, lead, pieces):
                yield note
                if note.action != GO:
                    return
            lead, pieces, wait_ns = b"", [], 0
        if last == ask.tokens - 1:
            yield from _ending(answer, wait_ns, lead, pieces)
        elif pieces:
            yield from _write(answer, wait_ns, lead, pieces)
        lead, start = b"", []


def _batches(answer: _Answer) -> Iterator[list[Span]]:
    """The spans of each write; only the first and the last one of a plain answer."""
    tokens = answer.ask.tokens
    if answer.is_plain:
        yield [Span(CONTENT, 0, 1)]
        if tokens > 1:
            yield [Span(CONTENT, tokens - 1, 1)]
        return
    walk = spans(answer.ask)
    while batch := list(islice(walk, answer.ask.pattern.events_per_write)):
        yield batch


def _plain_tokens(answer: _Answer, start: int, end: int) -> Iterator[Note]:
    """One content token a write: what most answers are made of, so it is kept short."""
    gap, say, wrap = answer.gap, answer.voice.one_token(), answer.wrap
    for position in range(start, end):
        yield Note(gap(position), wrap(say(position)), _ONE_TOKEN)


def _ending(answer: _Answer, wait_ns: int, lead: bytes, pieces: list[Piece]) -> Iterator[Note]:
    """The last tokens and what follows them: in one write, but for what is to be late."""
    pattern, voice = answer.ask.pattern, answer.voice
    if not pattern.finish_with_last:
        pieces = [*pieces, _piece(answer, voice.finish(), FINISH)]
    if answer.ask.include_usage:
        if pattern.usage_late_ms:
            yield from _write(answer, wait_ns, lead, pieces)
            lead, pieces, wait_ns = b"", [], round(pattern.usage_late_ms * NS_PER_MS)
        pieces = [*pieces, _piece(answer, voice.usage(), USAGE)]
    if answer.fault == "no_end":
        yield from _write(answer, wait_ns, lead, pieces, action=CLOSE)
        return
    if answer.fault != "no_done":
        if pattern.done_late_ms:
            yield from _write(answer, wait_ns, lead, pieces)
            lead, pieces, wait_ns = b"", [], round(pattern.done_late_ms * NS_PER_MS)
        pieces = [*pieces, _piece(answer, envelope.DONE_DATA, DONE)]
    end = envelope.body_end(pattern)
    if answer.apart:
        yield from _write(answer, wait_ns, lead, pieces)
        yield Note(0, end, (), END)
        return
    note = joined(wait_ns, lead, pieces)
    yield Note(wait_ns, note.data + end, note.events, END)


def _write(
    answer: _Answer, wait_ns: int, lead: bytes, pieces: list[Piece], action: int = GO
) -> Iterator[Note]:
    """Pieces in one write or, where they are to be cut, each in two of its own."""
    if not answer.apart:
        yield joined(wait_ns, lead, pieces, action)
        return
    if lead:
        yield Note(wait_ns, lead, ())
        wait_ns = 0
    for piece in pieces:
        first, second = cut(wait_ns, piece, _next_cut(answer, piece.data))
        yield first
        yield second._replace(action=action if piece is pieces[-1] else GO)
        wait_ns = 0


def _next_cut(answer: _Answer, data: bytes) -> int:
    """Where these bytes are cut: one byte further on than the last ones were."""
    answer.room.cuts += 1
    return 1 + answer.room.cuts % (len(data) - 1)


def _token_pieces(answer: _Answer, batch: list[Span]) -> list[Piece]:
    ask, pieces = answer.ask, []
    for kind, first, size in batch:
        ends = ask.pattern.finish_with_last and first + size == ask.tokens
        long = answer.fault == "long_line" and first <= answer.struck_at < first + size
        padding = ask.pattern.long_line_bytes if long else 0
        data = answer.voice.tokens(kind, first, size, finish=ends, padding=padding)
        pieces.append(_piece(answer, data, kind, size))
    return pieces


def _piece(answer: _Answer, data: bytes, kind: int, tokens: int = 0) -> Piece:
    pattern = answer.ask.pattern
    if pattern.split == "chunks":
        event = envelope.sse(pattern, data)
        at = _next_cut(answer, event)
        wire = envelope.chunk(pattern, event[:at]) + envelope.chunk(pattern, event[at:])
    else:
        wire = answer.wrap(data)
    closing = 0 if pattern.framing == "close" else 2
    return Piece(wire, (kind, tokens), len(wire) - closing)


def _ending_in_terminators(notes: Iterator[Note]) -> Iterator[Note]:
    """Each write ends with what looks like the last chunk: the real end of its HTTP chunk is
    held back for the next write."""
    held = b""
    for note in notes:
        data = held + note.data
        held = b""
        if data.endswith(envelope.LAST_CHUNK + b"\r\n"):
            data, held = data[:-2], b"\r\n"
        yield note._replace(data=data)
