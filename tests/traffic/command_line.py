"""Runs the `legato` command as a user does: a process of its own, watched from outside."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import legato
from legato.recording import Recording

HANG_S = 40  # no test waits for a time; this only ends one that would never end
SETTINGS = ("LEGATO_API_KEY", "OPENAI_API_KEY", "HTTPS_PROXY", "https_proxy", "LEGATO_PROFILE")


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document

    def is_one_sentence(self) -> bool:
        """Nothing on stdout, one line of ours on stderr."""
        return (
            not self.out
            and self.err.startswith("legato: ")
            and self.err.count("\n") == 1
            and self.err.endswith("\n")
        )


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "legato.cli", *map(str, arguments)]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This one, without what would change a run."""
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return {**kept, **(extra or {})}


def run(
    *arguments: object,
    cwd: Path | None = None,
    extra: Mapping[str, str] | None = None,
    prefix: tuple[str, ...] = (),
) -> Finished:
    done = subprocess.run(
        [*prefix, *command(*arguments)],
        cwd=cwd,
        env=environment(extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def bench(
    url: str,
    out: Path,
    *arguments: object,
    extra: Mapping[str, str] | None = None,
    prefix: tuple[str, ...] = (),
) -> tuple[Finished, Recording]:
    """A bench that is expected to leave a recording."""
    done = run("bench", url, "--json", "--out", out, *arguments, extra=extra, prefix=prefix)
    assert out.exists(), done.err
    return done, legato.load(str(out))


class Started:
    """A command that runs, in a session of its own as at a terminal."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def members(self) -> list[int]:
        """Every process of the session that still runs."""
        return [pid for pid, session in _sessions() if session == self.pid]

    def workers(self) -> list[int]:
        return [pid for pid in self.members() if b"legato.traffic.worker" in cmdline(pid)]

    def signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def finished(self) -> Finished:
        out, err = self._process.communicate(timeout=HANG_S)
        return Finished(self._process.returncode, out, err)


@contextlib.contextmanager
def started(*arguments: object, extra: Mapping[str, str] | None = None) -> Iterator[Started]:
    process = subprocess.Popen(
        command(*arguments),
        env=environment(extra),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    handle = Started(process)
    try:
        yield handle
    finally:
        for pid in handle.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline_s, f"never happened: {what}"
        time.sleep(0.02)


def cmdline(pid: int) -> bytes:
    """Empty where the process has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _sessions() -> Iterator[tuple[int, int]]:
    """(process, its session) of all that run and are no zombies."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if state not in "ZX":
                yield int(entry.name), int(session)


def expected_code(summary: Mapping[str, Any]) -> int:
    """What a run with at least one good stream must end with; a noisy machine may make any run
    invalid, and then the command must say so."""
    return 3 if summary["instrument"]["verdict"] == "invalid" else 0
