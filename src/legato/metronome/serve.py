"""The metronome as a process: its settings, its start, its signals and its end."""

from __future__ import annotations

import ctypes
import gc
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legato.errors import UsageError
from legato.metronome.pattern import Pattern
from legato.metronome.server import Server, listen, new_run_name
from legato.metronome.tls import TlsFiles, context_of
from legato.metronome.truthlog import TruthLog

_PR_SET_TIMERSLACK = 29


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to listen and what to send."""

    pattern: Pattern
    host: str = "127.0.0.1"
    port: int = 0
    truth: Path | None = None
    tls: TlsFiles | None = None
    stops_with_stdin: bool = False  # ends when whoever started it is gone


def serve(settings: Settings, listening: Callable[[int], None]) -> dict[str, Any]:
    """Serve until SIGINT or SIGTERM; calls `listening` with the port, returns what was done."""
    context = context_of(settings.tls) if settings.tls is not None else None
    listener = _listener(settings)
    run = new_run_name()
    log = TruthLog(settings.truth, run) if settings.truth is not None else None
    server = Server(settings.pattern, listener, log, run, context)
    wake, woken = socket.socketpair()
    try:
        _stop_on_signals(server, wake, woken)
        if settings.stops_with_stdin:
            server.stop_on(sys.stdin.fileno())
        _sharpen()
        listening(listener.getsockname()[1])
        server.run()
        return server.stats()
    finally:
        signal.set_wakeup_fd(-1)
        server.close()
        if log is not None:
            log.close()
        wake.close()
        woken.close()


def _listener(settings: Settings) -> socket.socket:
    if not 0 <= settings.port <= 65535:
        raise UsageError(f"the port is {settings.port}; it must be from 0 to 65535")
    try:
        return listen(settings.host, settings.port)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"cannot listen on {settings.host} port {settings.port}: {reason}; "
            "choose another with --port (0 takes a free one)"
        ) from error


def _stop_on_signals(server: Server, wake: socket.socket, woken: socket.socket) -> None:
    # The handler does nothing: the byte that Python writes to `wake` ends the wait.
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    server.stop_on(woken.fileno())


def _sharpen() -> None:
    """Let this process hold many sockets, wake on time and never pause to collect garbage."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.collect()
    gc.freeze()
    gc.disable()
