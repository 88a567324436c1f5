"""Where to look next: a sentence for what a summary shows of the target, and one command.

What is wrong with the measurement itself stands in the verdict's reasons; here is what concerns
the endpoint. Only commands and options that exist are named.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from legato.report import words
from legato.report.figures import whole
from legato.report.lookup import (
    Summary,
    count,
    finite,
    items,
    number,
    recordings,
    setting,
    text,
    value,
)

# The verdict's own limits, for telling a late client from a load that ended too soon.
MERGED_LIMIT = 0.03
REACHED_LIMIT = 0.98
REFUSED = (429, 503)

YOUR_URL = "http://HOST:8000/v1"


def advice(summary: Summary) -> list[str]:
    """Where to look, the most important first."""
    if not words.measured(summary):
        return [_for_target(summary)]
    found = [_for_failures(summary)]
    if words.verdict(summary) != "invalid":  # its pace is not judged
        found += [_for_bursts(summary), _for_stalls(summary), _for_spread(summary)]
    found.append(_for_tokens(summary))
    return [sentence for sentence in found if sentence]


def next_command(summary: Summary) -> tuple[str, str]:
    """(a command to type, what it is for)."""
    rest, purpose = _next(summary)
    return f"legato {rest}", purpose


def _next(summary: Summary) -> tuple[str, str]:
    paths, verdict = recordings(summary), words.verdict(summary)
    if verdict == "failed":
        return f"bench{_target(summary)} --concurrency 1 --requests 1", "one request alone"
    if _load_not_held(summary):
        return _longer_load(summary), "the same load, held for longer"
    if verdict in ("degraded", "invalid"):
        return _for_late_client(summary)
    if setting(summary, "embedded") is True:
        return f"bench {YOUR_URL}", "your endpoint: this run measured the built-in metronome"
    if paths and (words.stall_words(summary) or words.spread_words(summary)):
        return f"explain {shlex.join(paths)}", "what goes with the long gaps"
    if paths:
        return f"report {shlex.join(paths)} --json", "every figure, for a program"
    return "bench --help", "what else can be measured"


def _target(summary: Summary) -> str:
    """The URL as an argument; a metronome of our own is gone, and comes again without one."""
    url = text(summary, "run", "settings", "url")
    return f" {shlex.quote(url)}" if url and setting(summary, "embedded") is not True else ""


def _load_not_held(summary: Summary) -> bool:
    """Whether a client that kept up nevertheless had fewer streams open than asked for."""
    asked = finite(setting(summary, "concurrency"))
    reached = number(summary, "instrument", "concurrency_reached")
    merged = number(summary, "instrument", "client_merged_share")
    if asked is None or reached is None or merged is None:
        return False
    return reached < REACHED_LIMIT * asked and merged <= MERGED_LIMIT


def _longer_load(summary: Summary) -> str:
    asked = int(setting(summary, "concurrency"))
    requests = max(10 * asked, 2 * count(summary, "streams", "total"))
    return f"bench{_target(summary)} --concurrency {asked} --requests {requests}"


def _for_late_client(summary: Summary) -> tuple[str, str]:
    """Less load where the machine is known to carry no more; the same on an idle machine where
    it should have carried it; a calibration where neither is known."""
    limit = number(summary, "run", "calibration", "limit", "events_per_s")
    events = _events_per_s(summary)
    if not limit or not events:
        return "calibrate", "how much load this machine can measure"
    known = f"this machine is good for {whole(limit)} events/s, and the run had {whole(events)}"
    if events > limit:
        return _load(summary, limit / events), f"less load: {known}"
    return _load(summary, 1.0), f"the same load with nothing else running: {known}"


def _load(summary: Summary, share: float) -> str:
    """`share` of the run's load as a command."""
    streams, rate = finite(setting(summary, "concurrency")), finite(setting(summary, "rate"))
    requests = finite(setting(summary, "requests"))
    parts = [
        f"bench{_target(summary)}",
        f"--concurrency {max(1, int(streams * share))}" if streams else "",
        f"--rate {rate * share:.3g}" if rate else "",
        f"--requests {int(requests)}" if requests else "",
    ]
    return " ".join(part for part in parts if part)


def _events_per_s(summary: Summary) -> float | None:
    tokens, duration_s = count(summary, "tokens", "output"), number(summary, "run", "duration_s")
    per_chunk = number(summary, "tokens_per_chunk", "mean")
    return tokens / per_chunk / duration_s if tokens and per_chunk and duration_s else None


def _for_target(summary: Summary) -> str:
    if count(summary, "streams", "not_streaming"):
        return (
            "Does the server honour `stream: true`, and does a proxy before it collect the"
            " answer? Ask the server directly to tell which."
        )
    if words.verdict(summary) != "failed":
        return "Let the run go on until some answers are complete."
    return "Check the URL, the model and the key; the failures say what came back."


def _for_failures(summary: Summary) -> str | None:
    """By the most frequent failure."""
    kinds = [kind for kind in items(summary, "failures") if isinstance(kind, Mapping)]
    if not kinds:
        return None
    most = max(kinds, key=lambda kind: count(kind, "count"))
    if value(most, "status") == "timeout":
        return (
            "Requests timed out: with fewer streams, do they come through? Then the server's"
            " queue is longer than the time allowed (--first-byte-timeout, --idle-timeout)."
        )
    if number(most, "http_status") in REFUSED:
        return "The server refused requests: its limit lies below this load."
    return "Failures: the first error of each kind is above; the server's log has the rest."


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
    if words.stalls_shared(summary):
        return (
            "Streams that stop together wait for one thing: a long prefill that blocks decoding,"
            " a pause of the server, or of the path to it. With --concurrency 1 it is no"
            " other request's prefill."
        )
    return (
        "Repeat with --concurrency 1: stalls that vanish come from the other requests"
        " (their prefill, or preemption)."
    )


def _for_spread(summary: Summary) -> str | None:
    if words.burst_words(summary) or words.stall_words(summary):
        return None
    if words.spread_words(summary) is None:
        return None
    return (
        "Repeat with --concurrency 1: slow gaps that vanish come from the other requests"
        " (their prefill shares a step with this decode); those that stay are the server's own."
    )


def _for_tokens(summary: Summary) -> str | None:
    if words.token_words(summary) is None:
        return None
    return "With --tokenizer the tokens of each chunk are counted."
