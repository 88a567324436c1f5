"""Where to look next: a sentence for what a summary shows of the target, and one command.

Pure functions of a summary. What is wrong with the measurement itself stands in the verdict's
reasons; here is what concerns the endpoint. Only commands and options that exist are named.
"""

from __future__ import annotations

import shlex

from legato.report import words
from legato.report.lookup import Summary, count, finite, number, recordings, setting, text

# The verdict's own limits, for telling a late client from a load that ended too soon.
MERGED_LIMIT = 0.03
REACHED_LIMIT = 0.98


def advice(summary: Summary) -> list[str]:
    """Where to look, the most important first."""
    if not words.measured(summary):
        return [_for_target(summary)]
    found = [_for_bursts(summary), _for_stalls(summary), _for_tokens(summary)]
    return [sentence for sentence in found if sentence]


def next_command(summary: Summary) -> tuple[str, str]:
    """(a command to type, what it is for)."""
    paths, verdict = recordings(summary), words.verdict(summary)
    if verdict == "failed":
        url = text(summary, "run", "settings", "url")
        target = f" {shlex.quote(url)}" if url else ""
        return f"legato bench{target} --concurrency 1 --requests 1", "one request alone"
    if _load_not_held(summary):
        return _longer_load(summary), "the same load, held for longer"
    if verdict in ("degraded", "invalid"):
        return "legato calibrate", "how much load this machine can measure"
    if paths:
        return f"legato report {shlex.join(paths)} --json", "every figure, for a program"
    return "legato bench --help", "what else can be measured"


def _load_not_held(summary: Summary) -> bool:
    """Whether a client that kept up nevertheless had fewer streams open than asked for."""
    asked = finite(setting(summary, "concurrency"))
    reached = number(summary, "instrument", "concurrency_reached")
    merged = number(summary, "instrument", "client_merged_share")
    if asked is None or reached is None or merged is None:
        return False
    return reached < REACHED_LIMIT * asked and merged <= MERGED_LIMIT


def _longer_load(summary: Summary) -> str:
    url, asked = text(summary, "run", "settings", "url"), int(setting(summary, "concurrency"))
    requests = max(10 * asked, 2 * count(summary, "streams", "total"))
    target = f" {shlex.quote(url)}" if url else ""
    return f"legato bench{target} --concurrency {asked} --requests {requests}"


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
