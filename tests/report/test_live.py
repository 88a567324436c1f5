from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest
from rich.cells import cell_len
from rich.console import Console

from legato.report.live import LiveView, Snapshot, drawing

SNAPSHOT = Snapshot(
    elapsed_s=72.4,
    open_streams=49,
    asked_streams=50,
    done=370,
    total=1000,
    events_per_s=4871.2,
    gap_p50_ms=10.0,
    gap_p99_ms=11.2,
    errors=2,
    lag_p99_ms=0.04,
    phase="measuring",
)
UNKNOWN = Snapshot(0.0, 0, None, 0, None, 0.0, None, None, 0, None, "warm-up")


def lines(snapshot: Snapshot, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, no_color=True, force_terminal=False)
    drawn = console.render_lines(drawing(snapshot, console), pad=False)
    return ["".join(segment.text for segment in line) for line in drawn]


def test_a_running_bench_fits_two_lines_of_80_columns() -> None:
    assert lines(SNAPSHOT, 80) == [
        "measuring  ████░░░░░░░░ 370/1,000 · 1:12 · 49 of 50 streams open · 2 errors",
        "  4,871 events/s · gap p50 10.0 ms, p99 11.2 ms · client lag p99 40.0 µs",
    ]


@pytest.mark.parametrize("snapshot", [SNAPSHOT, UNKNOWN])
@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_the_display_is_two_lines_at_any_width(snapshot: Snapshot, width: int) -> None:
    drawn = lines(snapshot, width)
    assert len(drawn) == 2
    assert all(cell_len(line) <= width for line in drawn)


def test_while_decoding_only_the_number_of_streams_is_shown() -> None:
    decoding = Snapshot(0.0, 0, None, 2400, None, 0.0, None, None, 0, None, "decoding")
    assert lines(decoding, 80) == ["decoding 2,400 streams…"]


def test_where_stderr_is_not_a_terminal_nothing_is_printed() -> None:
    file = io.StringIO()
    with LiveView(Console(file=file, force_terminal=False)) as view:
        view.update(SNAPSHOT)
    assert file.getvalue() == ""


def test_updates_in_quick_succession_are_drawn_once() -> None:
    file = io.StringIO()
    with LiveView(Console(file=file, force_terminal=True, width=100)) as view:
        for _ in range(50):
            view.update(SNAPSHOT)
        assert file.getvalue().count("events/s") == 1


def test_a_new_phase_is_drawn_at_once() -> None:
    file = io.StringIO()
    with LiveView(Console(file=file, force_terminal=True, width=100)) as view:
        view.update(UNKNOWN)
        view.update(SNAPSHOT)
        assert "measuring" in file.getvalue()


PROGRAM = """
import sys
from legato.report.live import LiveView, Snapshot
with LiveView() as view:
    view.update(Snapshot(1.0, 1, 1, 0, 9, 5.0, None, None, 0, None, "measuring"))
    print('{"json": true}')
    if sys.argv[1:] == ["fail"]:
        raise KeyboardInterrupt
"""


def on_a_terminal(*arguments: str) -> tuple[bytes, bytes]:
    """(stdout, what the terminal on stderr saw) of `PROGRAM`."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
        check=False,
    )
    os.close(theirs)
    seen = b""
    try:
        while block := os.read(ours, 65536):
            seen += block
    except OSError:  # the other end is closed and everything has been read
        pass
    os.close(ours)
    return done.stdout, seen


def test_the_display_goes_to_stderr_and_leaves_stdout_alone() -> None:
    stdout, seen = on_a_terminal()
    assert stdout == b'{"json": true}\n'
    assert b"measuring" in seen


def test_the_cursor_comes_back_even_when_the_run_is_interrupted() -> None:
    _, seen = on_a_terminal("fail")
    assert seen.count(b"\x1b[?25l") == seen.count(b"\x1b[?25h") == 1


def test_importing_the_live_view_does_not_import_rich() -> None:
    code = "import sys, legato.report.live; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
