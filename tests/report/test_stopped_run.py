"""A run that its user stops: what was open then is said to be open, not to have failed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.report.words import headline


def test_streams_open_at_ctrl_c_are_left_open_and_no_failure(tmp_path: Path) -> None:
    with running(Pattern(gap_ms=20, tokens=2000)) as metronome:
        bench = subprocess.Popen(
            [
                *(sys.executable, "-m", "legato.cli", "bench", metronome.url, "--json"),
                *("--concurrency", "4", "--requests", "8", "--output-tokens", "2000"),
                *("--out", str(tmp_path / "run.parquet")),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        stats = f"http://127.0.0.1:{metronome.port}/metronome/stats"
        deadline_s = time.monotonic() + 20
        while time.monotonic() < deadline_s:
            with urllib.request.urlopen(stats) as answer:
                if json.load(answer)["events"] > 100:
                    break
            time.sleep(0.05)
        bench.send_signal(signal.SIGINT)
        stdout, _ = bench.communicate(timeout=30)
    summary = json.loads(stdout)
    assert summary["streams"]["left_open"] == summary["streams"]["aborted"] == 4
    assert summary["failures"] == []
    said = headline(summary)
    assert "0 of 8 requests completed; 4 were open when it stopped" in said
    assert "failed" not in said
