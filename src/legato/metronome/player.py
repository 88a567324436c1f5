"""The player: the heap of deadlines, the writes that are due, and the log of what was written.

This is the hot path. Deadlines follow from deadlines, never from the clock, so that being late
once makes nothing later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

from legato.metronome import truth
from legato.metronome.ask import Ask
from legato.metronome.connection import Connection, Turn
from legato.metronome.lateness import Lateness
from legato.metronome.note import CLOSE, END, GO, RESET, SILENT, Note
from legato.metronome.pace import NS_PER_MS, Room
from legato.metronome.payload import Voice
from legato.metronome.score import score
from legato.metronome.truthlog import TruthLog

# Sends and reads take turns, so that a flood of either delays the other by about a millisecond.
SENDS_A_ROUND = 64
_REASONS = {
    END: truth.FINISHED,
    CLOSE: truth.CLOSED,
    RESET: truth.RESET,
    SILENT: truth.SILENT,
}

_clock = time.monotonic_ns


class Player:
    """Plays the notes of all open answers.

    It is told of no socket event. It tells its owner by `on_full` that a socket has no room for
    all of a write, by `on_gone` that a client is gone, by `on_over` that an answer is over.
    """

    def __init__(
        self,
        log: TruthLog | None,
        run: str,
        *,
        on_full: Callable[[Connection, memoryview], None],
        on_gone: Callable[[Connection], None],
        on_over: Callable[[Connection, int], None],
    ) -> None:
        self.room = Room()
        self.lateness = Lateness()
        self.requests = 0
        self.events = 0
        self.writes = 0
        self._log = log
        self._run = run
        self._created_s = int(time.time())
        self._heap: list[tuple[int, int, Turn]] = []
        self._on_full, self._on_gone, self._on_over = on_full, on_gone, on_over

    def start(self, connection: Connection, ask: Ask, received_ns: int, by_kernel: bool) -> int:
        """Begin the answer to a request; returns its number."""
        number = self.requests
        self.requests += 1
        room = self.room
        room.open_streams += 1
        room.held_ns += round(ask.pattern.interference_ms * NS_PER_MS)
        voice = Voice(ask, self._run, number, self._created_s)
        notes = score(ask, voice, number, room, keep_alive=not connection.closes)
        turn = Turn(connection, number, notes, room.held_ns)
        connection.turn = turn
        if self._log is not None:
            api = truth.APIS.index(ask.api)
            self._log.request(number, received_ns, ask.prompt_tokens, api, by_kernel)
        heappush(self._heap, (received_ns + turn.note.wait_ns, number, turn))
        return number

    def wait_ns(self) -> int:
        """Time until the next note is due; a second where there is none."""
        return self._heap[0][0] - _clock() if self._heap else 1_000_000_000

    def rest(self) -> None:
        """Do what can be done while nothing is due."""
        if self._log is not None:
            self._log.prepare()

    def play_due(self) -> None:
        """Send what is due, up to a round of it."""
        heap, room = self._heap, self.room
        for _ in range(SENDS_A_ROUND):
            if not heap or heap[0][0] > _clock():
                return
            deadline_ns, number, turn = heap[0]
            if turn.over:
                heappop(heap)
                continue
            if turn.held_ns != room.held_ns:
                deadline_ns += room.held_ns - turn.held_ns
                turn.held_ns = room.held_ns
                heapreplace(heap, (deadline_ns, number, turn))
                continue
            note = turn.note
            data = note.data
            if data:
                if turn.seal is not None:
                    data = turn.seal(data)
                before_ns = _clock()
                try:
                    sent = turn.send(data)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    heappop(heap)
                    self._on_gone(turn.connection)
                    continue
                after_ns = _clock()
                self.lateness.add(before_ns - deadline_ns)
                if sent < len(data):
                    heappop(heap)
                    turn.deadline_ns, turn.before_ns = deadline_ns, before_ns
                    self._on_full(turn.connection, memoryview(data)[sent:])
                    continue
                self._written(turn, note, before_ns, after_ns, deadline_ns)
            if note.action != GO:
                heappop(heap)
                self._finish(turn, note.action)
                continue
            turn.note = following = next(turn.notes)
            heapreplace(heap, (deadline_ns + following.wait_ns, number, turn))

    def resume(self, turn: Turn, after_ns: int) -> None:
        """The rest of a write that had no room is out."""
        note = turn.note
        self._written(turn, note, turn.before_ns, after_ns, turn.deadline_ns)
        if note.action != GO:
            self._finish(turn, note.action)
            return
        turn.note = following = next(turn.notes)
        heappush(self._heap, (turn.deadline_ns + following.wait_ns, turn.number, turn))

    def end(self, turn: Turn, reason: int) -> None:
        """The answer is over, whole or not."""
        turn.over = True
        turn.connection.turn = None
        self.room.open_streams -= 1
        if self._log is not None:
            self._log.end(turn.number, _clock(), turn.events, reason)

    def _finish(self, turn: Turn, action: int) -> None:
        refused = action == END and not turn.events
        self.end(turn, truth.HTTP_ERROR if refused else _REASONS[action])
        self._on_over(turn.connection, action)

    def _written(
        self, turn: Turn, note: Note, before_ns: int, after_ns: int, deadline_ns: int
    ) -> None:
        """Count and log a write that is out in full."""
        write, index, log = turn.writes, turn.events, self._log
        turn.writes = write + 1
        turn.events = index + len(note.events)
        self.writes += 1
        self.events += len(note.events)
        if log is None:
            return
        for kind, tokens in note.events:
            log.event(turn.number, index, write, kind, tokens, before_ns, after_ns, deadline_ns)
            index += 1
        if not note.events:
            log.piece(turn.number, write, before_ns, after_ns, deadline_ns)
