"""How large the HTML report of a large run is, and how long it takes: `python -m
benchmarks.html_report`.

Simulates a recording of 10,000 streams of 200 tokens (lognormal gaps, stalls that hit all open
streams at once, some failed streams), writes it, then times `legato report --html` as a user
would run it. Prints both figures against their limits and exits with 1 where one is crossed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from legato.metrics.gaps import Floats
from legato.recording import CONTENT, HAS_CHOICES, Recording, Stream

LIMIT_S = 15.0
LIMIT_MB = 8.0

EPOCH_NS = 1_700_000_000_000_000_000
MS = 1_000_000


def simulated(streams: int, tokens: int, *, concurrency: int = 200, seed: int = 7) -> Recording:
    """A closed loop against a server whose pace falls with the context and that stalls at times."""
    random = np.random.default_rng(seed)
    stalls_ms = np.sort(
        random.uniform(0, streams / concurrency * tokens * 22, max(2, streams // 900))
    )
    free_ms = np.sort(random.uniform(0, 400, concurrency))
    made = []
    for index in range(streams):
        slot = int(free_ms.argmin())
        sent_ms = float(free_ms[slot])
        arrivals_ms = _arrivals_ms(random, tokens, sent_ms, stalls_ms)
        failed = index % 997 == 996
        made.append(_stream(index, sent_ms, arrivals_ms[: 7 if failed else tokens], failed))
        free_ms[slot] = sent_ms + arrivals_ms[-1] + 2
    last_ns = max(stream.ended_ns for stream in made)
    return Recording.from_streams(
        made,
        {
            "settings": {
                "url": "http://127.0.0.1:8000/v1",
                "model": "simulated",
                "mode": "closed",
                "concurrency": concurrency,
                "requests": streams,
            },
            "load": {"started_ns": EPOCH_NS, "ended_ns": last_ns, "cpu_share": 0.4},
            "host": {"cpus": 2, "loopback": True},
        },
    )


def _arrivals_ms(
    random: np.random.Generator, tokens: int, sent_ms: float, stalls_ms: Floats
) -> Floats:
    gaps_ms = random.lognormal(np.log(18), 0.12, tokens) * np.linspace(1, 1.25, tokens)
    gaps_ms[0] = random.lognormal(np.log(140), 0.3)
    arrivals_ms = np.cumsum(gaps_ms)
    for stall_ms in stalls_ms - sent_ms:
        if arrivals_ms[0] < stall_ms < arrivals_ms[-1]:
            arrivals_ms[np.searchsorted(arrivals_ms, stall_ms) :] += 350 + random.exponential(120)
    return np.asarray(arrivals_ms, dtype=np.float64)


def _stream(index: int, sent_ms: float, arrivals_ms: Floats, failed: bool) -> Stream:
    n = len(arrivals_ms)
    sent_ns = EPOCH_NS + round(sent_ms * MS)
    arrival_ns = (arrivals_ms * MS).astype(np.int64)
    return Stream(
        stream_id=index,
        scheduled_ns=sent_ns,
        sent_ns=sent_ns,
        ended_ns=sent_ns + int(arrival_ns[-1]) + 100_000,
        status="aborted" if failed else "ok",
        error="connection reset by peer" if failed else None,
        prompt_tokens=64 << (index % 5),
        token_source="chunk_usage",
        arrival_ns=arrival_ns,
        lag_ns=np.full(n, 9_000),
        early_ns=np.zeros(n, np.int64),
        read_index=np.arange(n),
        segments=np.ones(n, np.int64),
        tokens=np.ones(n, np.int64),
        kind=np.full(n, CONTENT),
        flags=np.full(n, HAS_CHOICES),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--tokens", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run, page = Path(folder) / "run.parquet", Path(folder) / "run.html"
        simulated(args.streams, args.tokens).write(run)
        started = time.perf_counter()
        command = [sys.executable, "-m", "legato.cli", "report", str(run), "--html", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        took_s = time.perf_counter() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = used.ru_utime + used.ru_stime
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 1
        size_mb = page.stat().st_size / 1e6
    print(f"{args.streams:,} streams of {args.tokens} tokens")
    print(f"made in {took_s:.1f} s, {took_s / LIMIT_S:.2f} of the limit of {LIMIT_S:g} s")
    print(f"of which {cpu_s:.1f} s of CPU: the rest was waiting for one")
    print(f"{size_mb:.2f} MB, {size_mb / LIMIT_MB:.2f} of the limit of {LIMIT_MB:g} MB")
    return 0 if took_s <= LIMIT_S and size_mb <= LIMIT_MB else 1


if __name__ == "__main__":
    sys.exit(main())
