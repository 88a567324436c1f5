"""How long a stream may take, and the alarms that see to it: one a connection, looked at only
when it is due, so that a read costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from legato.wire.connection import Connection, Step


@dataclass(frozen=True, slots=True)
class Deadlines:
    """In seconds: to connect, to the first byte, between reads, in all."""

    connect_s: float = 10.0
    first_byte_s: float = 120.0
    idle_s: float = 60.0
    total_s: float = 600.0

    @property
    def after_send_s(self) -> float:
        """The soonest a stream that was sent can be late."""
        return min(self.first_byte_s, self.idle_s, self.total_s)

    def due(self, connection: Connection) -> tuple[int, str]:
        """(when it will be late if nothing more happens, and what for)."""
        if not connection.sent_ns:
            due_ns = connection.opened_ns + _ns(self.connect_s)
            return due_ns, f"no connection within {self.connect_s:g} s"
        total_ns = connection.sent_ns + _ns(self.total_s)
        if not connection.heard:
            due_ns = connection.sent_ns + _ns(self.first_byte_s)
            what = f"no byte of a response within {self.first_byte_s:g} s"
        else:
            due_ns = connection.last_read_ns + _ns(self.idle_s)
            what = f"nothing came for {self.idle_s:g} s"
        if total_ns < due_ns:
            return total_ns, f"not complete within {self.total_s:g} s"
        return due_ns, what


class Alarms:
    """A heap of alarms. At most one a connection counts: the earliest, which sets the next."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._heap: list[tuple[int, int, Connection]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_ns(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def opened(self, connection: Connection) -> None:
        self._set(connection, connection.opened_ns + _ns(self._deadlines.connect_s))

    def sent(self, connection: Connection) -> None:
        self._set(connection, connection.sent_ns + _ns(self._deadlines.after_send_s))

    def late(self, now_ns: int) -> Iterator[tuple[Connection, str]]:
        """The connections whose stream is late; one that moved meanwhile gets a later alarm."""
        while self._heap and self._heap[0][0] <= now_ns:
            at_ns, _, connection = heappop(self._heap)
            if at_ns != connection.alarm_ns:
                continue  # an earlier one was set after it
            connection.alarm_ns = 0
            if connection.step >= Step.IDLE:
                continue
            due_ns, what = self._deadlines.due(connection)
            if due_ns <= now_ns:
                yield connection, what
            else:
                self._set(connection, due_ns)

    def _set(self, connection: Connection, at_ns: int) -> None:
        if connection.alarm_ns and connection.alarm_ns <= at_ns:
            return
        connection.alarm_ns = at_ns
        self._count += 1
        heappush(self._heap, (at_ns, self._count, connection))


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
