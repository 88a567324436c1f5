"""Where to look next: a sentence for what a summary shows of the target, and one command.

Pure functions of a summary. What is wrong with the measurement itself stands in the verdict's
reasons; here is what concerns the endpoint. Only commands and options that exist are named.
"""

from __future__ import annotations

import shlex

from legato.report import words
from legato.report.lookup import Summary, count, number, text


def advice(summary: Summary) -> list[str]:
    """Where to look, the most important first."""
    if not words.measured(summary):
        return [_for_target(summary)]
    found = [_for_bursts(summary), _for_stalls(summary), _for_tokens(summary)]
    return [sentence for sentence in found if sentence]


def next_command(summary: Summary) -> tuple[str, str]:
    """(a command to type, what it is for)."""
    path, verdict = text(summary, "run", "recording"), words.verdict(summary)
    if verdict == "failed":
        url = text(summary, "run", "settings", "url")
        target = f" {shlex.quote(url)}" if url else ""
        return f"legato bench{target} --concurrency 1 --requests 1", "one request alone"
    if verdict in ("degraded", "invalid"):
        return "legato calibrate", "how much load this machine can measure"
    if path:
        return f"legato report {shlex.quote(path)} --json", "every figure, for a program"
    return "legato bench --help", "what else can be measured"


def _for_target(summary: Summary) -> str:
    if count(summary, "streams", "not_streaming"):
        return (
            "Does the server honour `stream: true`, and does a proxy before it collect the"
            " answer? Ask the server directly to tell which."
        )
    return "Check the URL, the model and the key; the failures say what came back."


def _for_bursts(summary: Summary) -> str | None:
    if words.burst_words(summary) is None:
        return None
    if (number(summary, "tokens_per_chunk", "mean") or 1.0) > words.TOKENS_PER_CHUNK_LIMIT:
        return (
            "Speculative decoding gives several tokens an event; without it, the server emits"
            " less often than it decodes."
        )
    return (
        "Several events in one segment: a proxy that buffers, or a server that writes in"
        " batches. Measure the server directly to tell which."
    )


def _for_stalls(summary: Summary) -> str | None:
    if not count(summary, "smoothness", "stall_count"):
        return None
    return (
        "Repeat with --concurrency 1: stalls that vanish come from the other requests"
        " (their prefill, or preemption)."
    )


def _for_tokens(summary: Summary) -> str | None:
    if words.token_words(summary) is None:
        return None
    return "With --tokenizer the tokens of each chunk are counted."
