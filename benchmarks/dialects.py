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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.peers import PEERS, Figures, Job, Peer, PeerError, Words, install, measure, words
from legato.metrics.dialects import all_dialects
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.reading import read

STREAMS = 5
TOKENS = 99  # a multiple of three, so that every event of three is full

# Both runs jitter, and the tools read their clock late: figures nearer than this agree.
CLOSE_MS = 0.5
CLOSE_SHARE = 0.03
# TTFT and E2E also hold what a tool does between its start and its first byte.
START_MS = 25.0

PLAIN = Pattern(tokens=TOKENS, gap_ms=10.0, first_token_ms=50.0)

PATTERNS = {
    "plain, 10 ms": PLAIN,
    "3 tokens an event": replace(PLAIN, tokens_per_event=3),
    "4 events a write": replace(PLAIN, events_per_write=4),
    "one 510 ms stall": replace(PLAIN, stall_ms=500.0, stall_at=50),
    "role 500 ms early": replace(PLAIN, first_token_ms=550.0, role_early=True),
    "usage 500 ms late": replace(PLAIN, usage_late_ms=500.0),
    "[DONE] 500 ms late": replace(PLAIN, done_late_ms=500.0),
    "no usage, 3 an event": replace(PLAIN, usage=False, tokens_per_event=3),
    "30 reasoning tokens": replace(PLAIN, reasoning_tokens=30),
    "30 tool-call tokens": replace(PLAIN, tool_tokens=30),
    "finish on last token": replace(PLAIN, finish_with_last=True),
    "lognormal gaps": replace(PLAIN, draw="lognormal", spread=0.5),
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
    def is_judged(self) -> bool:
        """A tail is shown and not judged: it is what differs from run to run."""
        return self.figure.endswith((".mean", ".p50"))

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
        print(f"preparing {' '.join(peer.requirements)} …", file=sys.stderr)
        try:
            install(peer)
        except PeerError as error:
            print(f"{peer.name} does not install here: {error}")
        else:
            ready.append(peer)
    return ready


def record(job: Job) -> dict[str, Figures]:
    """Our dialects of a run of `legato bench` with the same load."""
    out = job.folder / "legato.parquet"
    command = [
        *(str(Path(sys.executable).with_name("legato")), "bench", job.url, "--json"),
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
    theirs: dict[str, Figures] = {}
    for peer in peers:
        with running(pattern) as metronome:
            job = Job(metronome.url, tokenizer, STREAMS, requests, TOKENS, folder / peer.name)
            try:
                theirs[peer.name] = measure(peer, job)
            except PeerError as error:
                print(f"{peer.name} failed on {name!r}: {error}")
    with running(pattern) as metronome:
        job = Job(metronome.url, tokenizer, STREAMS, requests, TOKENS, folder / "legato")
        ours = record(job)
    return [
        row
        for peer in peers
        if peer.name in theirs
        for row in rows_of(name, peer, theirs[peer.name], ours[peer.dialect])
    ]


def rows_of(name: str, peer: Peer, theirs: Figures, ours: Figures) -> Iterator[Row]:
    for figure in peer.shown:
        metric, statistic = figure.split(".")
        one, other = theirs.get(metric, {}).get(statistic), ours.get(metric, {}).get(statistic)
        if one is not None and other is not None:
            yield Row(name, peer.name, figure, one, other)
        elif one != other:
            print(f"{name}: {peer.name} has {figure} {one}, our dialect {other}")


def show(rows: Sequence[Row]) -> None:
    for row in rows:
        mark = "  *" if row.is_judged and not row.agrees else ""
        print(
            f"{row.pattern:22}{row.tool:13}{row.figure:14}{row.theirs_ms:11.3f}"
            f"{row.ours_ms:11.3f}{row.theirs_ms - row.ours_ms:+10.3f}{mark}",
            flush=True,
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
    judged = [row for row in rows if row.is_judged]
    print(
        f"\n{sum(row.agrees for row in judged)} of {len(judged)} means and medians agree: within "
        f"{CLOSE_MS} ms or {CLOSE_SHARE:.0%}, TTFT and E2E within {START_MS:.0f} ms; "
        "* marks the others"
    )
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
