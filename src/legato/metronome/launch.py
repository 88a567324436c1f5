"""A metronome in a process of its own, for tests, calibration and `bench` without a URL."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import legato
from legato.errors import UsageError
from legato.metronome.pattern import Pattern, as_dict
from legato.metronome.tls import TlsFiles

STOP_SECONDS = 10


class Running:
    """A metronome that runs; `stop` ends it and gives what it did."""

    def __init__(self, process: subprocess.Popen[str], host: str, port: int, scheme: str) -> None:
        self.port = port
        self.pid = process.pid
        bracketed = f"[{host}]" if ":" in host else host
        self.url = f"{scheme}://{bracketed}:{port}/v1"
        self._process = process
        self._stats: dict[str, Any] | None = None

    def stop(self) -> dict[str, Any]:
        """End it and return its statistics; empty where it was killed."""
        if self._stats is None:
            self._stats = _last_words(self._process)
        return self._stats


@contextlib.contextmanager
def running(
    pattern: Pattern,
    *,
    truth: Path | None = None,
    tls: TlsFiles | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[Running]:
    """A metronome that listens, until the block ends or this process does."""
    document = {
        "pattern": as_dict(pattern),
        "host": host,
        "port": port,
        "truth": str(truth) if truth else None,
        "tls": [str(tls.cert), str(tls.key)] if tls else None,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "legato.metronome", json.dumps(document)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(),
        # Ctrl-C is for whoever started it, who then stops it.
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        answer: dict[str, Any] = (
            json.loads(line) if line else {"error": "the metronome did not start"}
        )
        if "error" in answer:
            raise UsageError(answer["error"])
        handle = Running(process, host, answer["port"], "https" if tls else "http")
        yield handle
        handle.stop()
    finally:
        _end(process)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def _environment() -> dict[str, str]:
    """This process's environment, in which the child finds this very package."""
    source = str(Path(legato.__file__).parent.parent)
    paths = [source, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_words(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    _end(process)
    words = [json.loads(line) for line in process.stdout if line.strip()]
    for word in words:
        if "error" in word:
            raise UsageError(word["error"])
    stats: dict[str, Any] = words[-1].get("stats", {}) if words else {}
    return stats
