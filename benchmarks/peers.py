"""Other measuring tools, each in a virtual environment of its own: install, run, read.

It runs their released code as a user would and reads the figures they report. Nothing but
loopback is contacted while they measure; only their installation needs a network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CACHE = Path.home() / ".cache" / "legato-benchmarks"
RUN_SECONDS = 180

# metric -> statistic -> figure, in ms, by the names the dialects use
Figures = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Words:
    """A word-level tokenizer in the layout of a hub cache, since some tools look only there."""

    home: Path
    name: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Job:
    """What a tool is asked to do."""

    url: str
    words: Words
    streams: int
    requests: int
    tokens: int
    folder: Path

    @property
    def root(self) -> str:
        return self.url.removesuffix("/v1")


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    dialect: str
    requirements: tuple[str, ...]
    arguments: Callable[[Job], list[str]]
    read: Callable[[Job], Figures]
    shown: tuple[str, ...]  # the figures to compare, "metric.statistic"

    @property
    def environment(self) -> Path:
        return CACHE / self.name


class PeerError(Exception):
    """A tool could not be installed, or did not finish its run."""


def install(peer: Peer) -> None:
    """Make the tool's environment unless it is there; PeerError says why it cannot be."""
    finished = peer.environment / "installed.txt"
    wanted = "\n".join(peer.requirements)
    if finished.is_file() and finished.read_text() == wanted:
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    _call([sys.executable, "-m", "venv", str(peer.environment)], os.environ)
    python = str(peer.environment / "bin" / "python")
    # One by one: a pinned torch must be there before a tool asks for any torch.
    for requirement in peer.requirements:
        _call([python, "-m", "pip", "install", "--quiet", requirement], os.environ)
    finished.write_text(wanted)


def measure(peer: Peer, job: Job) -> Figures:
    """Run the tool as a user would and read what it reports."""
    job.folder.mkdir(parents=True)
    command = [str(peer.environment / "bin" / peer.name), *peer.arguments(job)]
    offline = {
        "HF_HOME": str(job.words.home),
        "HF_HUB_OFFLINE": "1",
        "NO_PROXY": "*",
        "OPENAI_API_KEY": "none",
    }
    _call(command, {**os.environ, **offline}, cwd=job.folder, seconds=RUN_SECONDS)
    try:
        return peer.read(job)
    except (OSError, LookupError, ValueError) as error:
        raise PeerError(f"its report cannot be read: {error!r}") from error


def _call(
    command: list[str],
    environment: os._Environ[str] | dict[str, str],
    cwd: Path | None = None,
    seconds: float | None = None,
) -> None:
    try:
        done = subprocess.run(
            command, env=dict(environment), cwd=cwd, timeout=seconds, capture_output=True, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(str(error)) from error
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise PeerError(f"{command[0]} ended with {done.returncode}: {' | '.join(lines[-3:])}")


def words(home: Path) -> Words:
    """Write the tokenizer: a word is a token, as it is to the metronome."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    revision = "1".zfill(40)
    model = home / "hub" / "models--legato--words"
    folder = model / "snapshots" / revision
    folder.mkdir(parents=True, exist_ok=True)
    (model / "refs").mkdir(exist_ok=True)
    (model / "refs" / "main").write_text(revision)
    known = ["[UNK]", "<s>", "</s>", *(f"w{number}" for number in range(1000))]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(known)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "[UNK]",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "chat_template": "{% for message in messages %}{{ message['content'] }} {% endfor %}",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return Words(home, "legato/words", folder)


# --- AIPerf ---------------------------------------------------------------------------------


def _aiperf_arguments(job: Job) -> list[str]:
    return [
        *("profile", "--model", "metronome", "--url", job.root, "--endpoint-type", "chat"),
        *("--streaming", "--concurrency", str(job.streams), "--request-count", str(job.requests)),
        *("--tokenizer", job.words.name, "--isl", "20", "--osl", str(job.tokens), "--ui", "none"),
        *("--extra-inputs", "ignore_eos:true", "--output-artifact-dir", str(job.folder / "out")),
    ]


def _read_aiperf(job: Job) -> Figures:
    report = _json(job.folder / "out" / "profile_export_aiperf.json")
    names = {
        "itl_ms": "inter_token_latency",
        "ttft_ms": "time_to_first_token",
        "e2e_ms": "request_latency",
    }
    return {
        ours: {**report[theirs], "mean": report[theirs]["avg"]} for ours, theirs in names.items()
    }


# --- GuideLLM -------------------------------------------------------------------------------


def _guidellm_arguments(job: Job) -> list[str]:
    return [
        "run",
        *("--backend", f"kind=openai_http,target={job.root},model=metronome"),
        *("--profile", f"kind=concurrent,streams={job.streams}"),
        *("--constraint", f"kind=max_requests,count={job.requests}"),
        *("--tokenizer", f"kind=huggingface_auto,model={job.words.folder}"),
        *("--data", f"kind=synthetic_text,prompt_tokens=20,output_tokens={job.tokens}"),
        *("--output", f"kind=json,path={job.folder / 'report.json'}"),
        "--disable-console-interactive",
    ]


def _read_guidellm(job: Job) -> Figures:
    metrics = _json(job.folder / "report.json")["benchmarks"][0]["metrics"]
    names = {
        "itl_ms": ("inter_token_latency_ms", 1),
        "tpot_ms": ("time_per_output_token_ms", 1),
        "ttft_ms": ("time_to_first_token_ms", 1),
        "e2e_ms": ("request_latency", 1000),
    }
    figures: Figures = {}
    for ours, (theirs, scale) in names.items():
        seen = metrics[theirs]["successful"]
        figures[ours] = {
            "mean": seen["mean"] * scale,
            "p50": seen["median"] * scale,
            "p95": seen["percentiles"]["p95"] * scale,
        }
    return figures


# --- EvalScope ------------------------------------------------------------------------------


def _evalscope_arguments(job: Job) -> list[str]:
    return [
        *("perf", "--model", "metronome", "--url", f"{job.url}/chat/completions"),
        *("--api", "openai", "--parallel", str(job.streams), "-n", str(job.requests)),
        *("--max-tokens", str(job.tokens), "--dataset", "random"),
        *("--min-prompt-length", "20", "--max-prompt-length", "20"),
        *("--tokenizer-path", str(job.words.folder), "--no-test-connection"),
        *("--outputs-dir", str(job.folder / "out"), "--no-timestamp"),
    ]


def _read_evalscope(job: Job) -> Figures:
    folder = next((job.folder / "out").glob("**/benchmark_summary.json")).parent
    summary = _json(folder / "benchmark_summary.json")
    figures: Figures = {
        "itl_ms": {"mean": summary["Avg ITL (ms)"]},
        "tpot_ms": {"mean": summary["Avg TPOT (ms)"]},
        "ttft_ms": {"mean": summary["Avg TTFT (ms)"]},
        "e2e_ms": {"mean": summary["Avg Latency (s)"] * 1000},
    }
    names = {"itl_ms": "ITL (ms)", "tpot_ms": "TPOT (ms)", "ttft_ms": "TTFT (ms)"}
    for row in _json(folder / "benchmark_percentile.json"):
        label = row["Percentiles"]
        key = f"p{label.removesuffix('%')}" if label.endswith("%") else label
        for ours, theirs in names.items():
            figures[ours][key] = row[theirs]
        figures["e2e_ms"][key] = row["Latency (s)"] * 1000
    return figures


# --- genai-bench ----------------------------------------------------------------------------


def _genai_bench_arguments(job: Job) -> list[str]:
    return [
        *("benchmark", "--api-backend", "openai", "--api-base", job.root, "--api-key", "none"),
        *("--task", "text-to-text", "--api-model-name", "metronome", "--model", "metronome"),
        *("--model-tokenizer", str(job.words.folder), "--num-concurrency", str(job.streams)),
        *("--traffic-scenario", f"D(20,{job.tokens})", "--max-time-per-run", "2"),
        *("--max-requests-per-run", str(job.requests), "--metrics-time-unit", "ms"),
        *("--experiment-base-dir", str(job.folder), "--experiment-folder-name", "out"),
        *("--log-dir", str(job.folder)),
    ]


def _read_genai_bench(job: Job) -> Figures:
    report = _json(next((job.folder / "out").glob("D*.json")))
    stats = report["aggregated_metrics"]["stats"]
    names = {"tpot_ms": "tpot", "ttft_ms": "ttft", "e2e_ms": "e2e_latency"}
    return {ours: stats[theirs] for ours, theirs in names.items()}


# --- servebench -----------------------------------------------------------------------------


def _servebench_arguments(job: Job) -> list[str]:
    return [
        *("run", "--url", job.url, "--model", "metronome", "--concurrency", str(job.streams)),
        *("--num-requests", str(job.requests), "--output-len", str(job.tokens)),
        *("--warmup", "0", "--out", str(job.folder / "report.json")),
    ]


def _read_servebench(job: Job) -> Figures:
    summary = _json(job.folder / "report.json")["levels"][0]["summary"]
    return {
        f"{metric}_ms": {name: value * 1000 for name, value in summary[metric].items() if value}
        for metric in ("itl", "tpot", "ttft", "e2e")
    }


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


PEERS = (
    Peer(
        "aiperf",
        "aiperf",
        ("aiperf==0.13.0",),
        _aiperf_arguments,
        _read_aiperf,
        ("itl_ms.mean", "itl_ms.p99", "itl_ms.max", "ttft_ms.mean", "e2e_ms.mean"),
    ),
    Peer(
        "guidellm",
        "guidellm",
        ("torch==2.13.0", "guidellm==0.8.1"),
        _guidellm_arguments,
        _read_guidellm,
        ("itl_ms.mean", "itl_ms.p95", "tpot_ms.mean", "ttft_ms.mean", "e2e_ms.mean"),
    ),
    Peer(
        "evalscope",
        "evalscope",
        ("evalscope[perf]==1.14.1",),
        _evalscope_arguments,
        _read_evalscope,
        (
            "itl_ms.mean",
            "itl_ms.p50",
            "itl_ms.p99",
            "itl_ms.max",
            "tpot_ms.mean",
            "ttft_ms.mean",
            "e2e_ms.mean",
        ),
    ),
    Peer(
        "genai-bench",
        "genai_bench",
        ("genai-bench==0.0.5",),
        _genai_bench_arguments,
        _read_genai_bench,
        ("tpot_ms.mean", "tpot_ms.p99", "ttft_ms.mean", "e2e_ms.mean"),
    ),
    Peer(
        "servebench",
        "servebench",
        ("servebench==1.1.3",),
        _servebench_arguments,
        _read_servebench,
        (
            "itl_ms.mean",
            "itl_ms.p50",
            "itl_ms.p99",
            "itl_ms.max",
            "tpot_ms.p50",
            "ttft_ms.p50",
            "e2e_ms.p50",
        ),
    ),
)
