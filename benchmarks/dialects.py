"""Real tools beside our dialects: both measure the same patterns of the metronome.

    python -m benchmarks.dialects [--tools aiperf,guidellm] [--patterns plain,stall]

For every pattern each tool runs against the metronome, then `legato bench` records the same
pattern; printed are the tool's own figure, the figure of our dialect of it, and the difference.
The two are different runs, and the tool's own lateness is in its figure and not in ours.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import PEERS, Figures, Job, Peer, PeerError, Words, install, measure, words
from legato.metrics.dialects import all_dialects
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.recording import read

STREAMS = 5
TOKENS = 99  # a multiple of three, so that every event of three is full

# Both runs jitter, and the tools read their clock late: figures nearer than this agree.
CLOSE_MS = 0.5
CLOSE_SHARE = 0.03
# TTFT and E2E also hold what a tool does between its start and its first byte.
START_MS = 15.0

_BASE = {"tokens": TOKENS, "gap_ms": 10.0, "first_token_ms": 50.0}

PATTERNS = {
    "plain, 10 ms": Pattern(**_BASE),
    "3 tokens an event": Pattern(**_BASE, tokens_per_event=3),
    "4 events a write": Pattern(**_BASE, events_per_write=4),
    "one 510 ms stall": Pattern(**_BASE, stall_ms=500.0, stall_at=50),
    "role 500 ms early": Pattern(**_BASE | {"first_token_ms": 550.0}, role_early=True),
    "usage 500 ms late": Pattern(**_BASE, usage_late_ms=500.0),
    "[DONE] 500 ms late": Pattern(**_BASE, done_late_ms=500.0),
    "no usage, 3 an event": Pattern(**_BASE, usage=False, tokens_per_event=3),
    "30 reasoning tokens": Pattern(**_BASE, reasoning_tokens=30),
    "30 tool-call tokens": Pattern(**_BASE, tool_tokens=30),
    "finish on last token": Pattern(**_BASE, finish_with_last=True),
    "lognormal gaps": Pattern(**_BASE, draw="lognormal", spread=0.5),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one tool on one pattern, as the tool and as our dialect have it."""

    pattern: str
    tool: str
    figure: str
    theirs_ms: float
    ours_ms: float

    @property
    def agrees(self) -> bool:
        margin = max(CLOSE_MS, CLOSE_SHARE * abs(self.ours_ms))
        if self.figure.startswith(("ttft", "e2e")):
            margin = max(margin, START_MS)
        return abs(self.theirs_ms - self.ours_ms) <= margin


def installed(peers: Sequence[Peer]) -> list[Peer]:
    """The tools that can be had here; says why another cannot."""
    ready = []
    for peer in peers:
        print(f"installing {' '.join(peer.requirements)} …", file=sys.stderr)
        try:
            install(peer)
        except PeerError as error:
            print(f"{peer.name} does not install here: {error}")
        else:
            ready.append(peer)
    return ready


def record(url: str, job: Job) -> dict[str, Figures]:
    """Our dialects of a run of `legato bench` with the same load."""
    out = job.folder / "legato.parquet"
    command = [
        *(str(Path(sys.executable).with_name("legato")), "bench", url, "--json"),
        *("--concurrency", str(job.streams), "--requests", str(job.requests)),
        *("--prompt-tokens", "20", "--output-tokens", str(job.tokens)),
        *("--tokenizer", str(job.words.folder), "--out", str(out)),
    ]
    job.folder.mkdir(parents=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"legato bench ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return all_dialects(read(out))


def compare(
    name: str,
    pattern: Pattern,
    peers: Sequence[Peer],
    tokenizer: Words,
    requests: int,
    folder: Path,
) -> list[Row]:
    """Every tool, then ours, on one pattern. Each gets a fresh metronome, so that streams drawn
    by their number are the same to all."""
    rows: list[Row] = []
    figures: dict[str, Figures] = {}
    for peer in (*peers, None):
        where = folder / (peer.name if peer else "legato")
        with running(pattern) as metronome:
            job = Job(metronome.url, tokenizer, STREAMS, requests, TOKENS, where)
            if peer is None:
                ours = record(metronome.url, job)
                continue
            try:
                figures[peer.name] = measure(peer, job)
            except PeerError as error:
                print(f"{peer.name} failed on {name!r}: {error}")
    for peer in peers:
        theirs, mine = figures.get(peer.name, {}), ours[peer.dialect]
        for figure in peer.shown:
            metric, statistic = figure.split(".")
            pair = (theirs.get(metric, {}).get(statistic), mine.get(metric, {}).get(statistic))
            if pair[0] is not None and pair[1] is not None:
                rows.append(Row(name, peer.name, figure, *pair))
            elif pair != (None, None):
                print(f"{name}, {peer.name} {figure}: one has it, the other not: {pair}")
    return rows


def show(rows: Sequence[Row]) -> None:
    for row in rows:
        difference = row.theirs_ms - row.ours_ms
        print(
            f"{row.pattern:22}{row.tool:13}{row.figure:14}{row.theirs_ms:11.3f}"
            f"{row.ours_ms:11.3f}{difference:+10.3f}{'' if row.agrees else '  *'}"
        )


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.dialects", description=__doc__)
    parser.add_argument("--tools", default="", help="comma-separated; default: all")
    parser.add_argument("--patterns", default="", help="those whose name holds one of these words")
    parser.add_argument("--requests", type=int, default=20, help="a tool and a pattern (20)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(argv)
    wanted = [word for word in args.patterns.split(",") if word]
    tools = args.tools.split(",") if args.tools else [peer.name for peer in PEERS]
    patterns = {
        name: pattern
        for name, pattern in PATTERNS.items()
        if not wanted or any(word in name for word in wanted)
    }
    peers = installed([peer for peer in PEERS if peer.name in tools])
    rows: list[Row] = []
    print(f"{'pattern':22}{'tool':13}{'figure':14}{'tool ms':>11}{'legato ms':>11}{'diff':>10}")
    with tempfile.TemporaryDirectory(prefix="legato-dialects-") as temporary:
        tokenizer = words(Path(temporary) / "huggingface")
        for number, (name, pattern) in enumerate(patterns.items()):
            folder = Path(temporary) / str(number)
            found = compare(name, pattern, peers, tokenizer, args.requests, folder)
            show(found)
            rows += found
    agreeing = sum(row.agrees for row in rows)
    print(
        f"\n{agreeing} of {len(rows)} figures agree: within {CLOSE_MS} ms or {CLOSE_SHARE:.0%}, "
        f"TTFT and E2E within {START_MS:.0f} ms; * marks the others"
    )
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
