"""CPU time an event costs the client: legato beside other tools, in one run, alternating.

    python -m benchmarks.client_cost [--tools aiperf,evalscope] [--rounds 3]

Every tool reads the same metronome at 200 streams × 100 tokens/s. A tool is run with few and with
many requests; the difference of its CPU times over the difference in events is what an event
costs, start-up and imports left out. For legato that is the whole command: capture, decode and
summary. Each round runs every tool once, so that a noisy moment hits all alike.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.peers import PEERS, Job, Peer, PeerError, Words, install, measure, words
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern

STREAMS = 200
TOKENS = 100
FEW, MANY = 1, 4  # requests a stream
NOT_TRIED = "vllm is not run: its client comes only with the whole engine, several GB"

Run = Callable[[Job], None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="aiperf,evalscope,guidellm,genai-bench,servebench")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    chosen = [peer for peer in PEERS if peer.name in arguments.tools.split(",")]
    runs: dict[str, Run] = {"legato": _legato} | {p.name: _of(p) for p in _installed(chosen)}
    costs: dict[str, list[float]] = {name: [] for name in runs}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vocabulary = words(folder / "home")
        for number in range(arguments.rounds):
            for tool, run in runs.items():
                try:
                    costs[tool].append(_cost_us(run, folder / f"{tool}-{number}", vocabulary))
                except PeerError as error:
                    print(f"{tool} did not finish: {error}")
    _print(costs)
    print(NOT_TRIED)
    return 0


def _installed(peers: Sequence[Peer]) -> list[Peer]:
    ready = []
    for peer in peers:
        try:
            install(peer)
        except PeerError as error:
            print(f"{peer.name} does not install here: {error}")
        else:
            ready.append(peer)
    return ready


def _of(peer: Peer) -> Run:
    def run(job: Job) -> None:
        measure(peer, job)

    return run


def _legato(job: Job) -> None:
    job.folder.mkdir(parents=True)
    command = [sys.executable, "-m", "legato.cli", "bench", job.url]
    command += ["--concurrency", str(job.streams), "--requests", str(job.requests)]
    command += ["--output-tokens", str(job.tokens), "--prompt-tokens", "20", "--json"]
    done = subprocess.run(
        [*command, "--out", str(job.folder / "run.parquet")], capture_output=True, text=True
    )
    if done.returncode not in (0, 3):
        raise PeerError(done.stderr)


def _cost_us(run: Run, folder: Path, vocabulary: Words) -> float:
    """µs an event, from a short and a long run."""
    spent = [_cpu_s(run, folder / str(n), vocabulary, n * STREAMS) for n in (FEW, MANY)]
    return (spent[1] - spent[0]) * 1e6 / ((MANY - FEW) * STREAMS * TOKENS)


def _cpu_s(run: Run, folder: Path, vocabulary: Words, requests: int) -> float:
    """CPU time of the tool and all its processes; the metronome is still running, so it is not
    counted among them."""
    pattern = Pattern(gap_ms=10.0, first_token_ms=50.0, tokens=TOKENS)
    with running(pattern) as metronome:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(Job(metronome.url, vocabulary, STREAMS, requests, TOKENS, folder))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _print(costs: dict[str, list[float]]) -> None:
    ours = statistics.median(costs["legato"])
    print(f"\nCPU an event at {STREAMS} streams × 100 tokens/s, µs: median [range], and ÷ legato")
    for tool, found in costs.items():
        if found:
            middle = statistics.median(found)
            spread = f"[{min(found):.1f}, {max(found):.1f}]"
            print(f"  {tool:<12} {middle:7.1f}  {spread:<18} {middle / ours:5.1f} ×")


if __name__ == "__main__":
    sys.exit(main())
