"""The instrument's own part of a report, in labelled sentences: clock, error, lag, load.

Pure functions of a summary; what is unknown is left out, never filled in.
"""

from __future__ import annotations

from legato.report.figures import in_one_unit, ms, of, percent, significant, whole
from legato.report.lookup import Summary, finite, number, setting, text, value
from legato.report.words import calibrated, client_words

CLOCKS = {
    "kernel": "the kernel's receive stamps",
    "user": "the time of each read: the kernel gave no stamps",
    "mixed": "the kernel's receive stamps; the time of the read where there was none",
}

TOKEN_SOURCES = {
    "chunk_usage": "counted by the server in every chunk",
    "token_ids": "counted by the token ids in every chunk",
    "logprobs": "counted by the log-probabilities in every chunk",
    "tokenizer": "counted by the tokenizer given",
    "usage_spread": "the server's total for each answer, spread evenly over its chunks",
    "chunks": "one a chunk: the server gave no count",
    "mixed": "counted in different ways for different streams",
}


def instrument_lines(summary: Summary) -> list[tuple[str, str]]:
    """(label, sentence) for each thing that is known about how the run was measured."""
    clock = text(summary, "instrument", "clock")
    lines = [
        ("clock", CLOCKS.get(clock, clock) if clock else None),
        ("error", _error(summary)),
        ("lag", _lag(summary)),
        ("merged", _merged(summary)),
        ("CPU", _cpu(summary)),
        ("load", _load(summary)),
        ("tokens", TOKEN_SOURCES.get(text(summary, "tokens", "source") or "")),
        ("prompts", _prompts(summary)),
        ("path", _path(summary)),
        ("key", _key(summary)),
    ]
    return [(label, sentence) for label, sentence in lines if sentence]


def _error(summary: Summary) -> str | None:
    added = client_words(summary)
    if added is None:
        return None
    if value(summary, "run", "host", "loopback") is False:
        added += "; what the network card held back is not in it"
    if not calibrated(summary):
        added += "; not calibrated: run legato calibrate for this machine's floor"
    return added


def _lag(summary: Summary) -> str | None:
    p50_us, p99_us = (number(summary, "instrument", "lag_us", q) for q in ("p50", "p99"))
    if p50_us is None and p99_us is None:
        return None
    named = [(q, lag) for q, lag in (("p50", p50_us), ("p99", p99_us)) if lag is not None]
    shown = in_one_unit([lag_us / 1000 for _, lag_us in named])
    known = [f"{lag} ({name})" for lag, (name, _) in zip(shown, named, strict=True)]
    return f"the client read a chunk {', '.join(known)} after it arrived"


def _merged(summary: Summary) -> str | None:
    merged = number(summary, "instrument", "client_merged_share")
    if merged is None:
        return None
    shared = number(summary, "instrument", "coalesced_share")
    beside = "" if shared is None else f"; {percent(shared)} shared a read for any reason"
    return f"{percent(merged)} of chunks, because the client read late{beside}"


def _cpu(summary: Summary) -> str | None:
    share = number(summary, "instrument", "cpu_share")
    return None if share is None else f"the busiest worker used {percent(share)} of a core"


def _load(summary: Summary) -> str | None:
    reached, asked = number(summary, "instrument", "concurrency_reached"), _asked_streams(summary)
    slip_ms = number(summary, "instrument", "schedule_slip_ms", "p99")
    parts = []
    if reached is not None:
        of_asked = "" if asked is None else f" of {whole(asked)}"
        parts.append(f"{significant(reached)}{of_asked} streams open on average")
    if slip_ms is not None:
        parts.append(f"requests left at most {ms(slip_ms)} late (p99)")
    return "; ".join(parts) or None


def _prompts(summary: Summary) -> str | None:
    friendly = setting(summary, "cache_friendly")
    if friendly is None:
        return None
    if friendly:
        return "sent as they are: a prefix cache may have helped"
    return "each started with a salt of its own, so that no prefix cache helped"


def _path(summary: Summary) -> str | None:
    """What stood between client and server, where that is worth knowing."""
    proxy, retried = setting(summary, "proxy"), number(summary, "run", "retried")
    parts = []
    if proxy:
        parts.append(f"through the proxy {proxy}")
    if setting(summary, "tls") and setting(summary, "verified") is False:
        parts.append("certificates not verified")
    if retried:
        parts.append(f"{of(int(retried), 'kept connection')} had been closed and replaced")
    return "; ".join(parts) or None


def _key(summary: Summary) -> str | None:
    """Where the key came from; the key itself is nowhere."""
    name = setting(summary, "key_from")
    return f"from {name}" if isinstance(name, str) and name else None


def _asked_streams(summary: Summary) -> float | None:
    return finite(setting(summary, "concurrency"))
