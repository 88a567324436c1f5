"""The streams that failed, counted by what went wrong, with the first error of each kind.

Pure; it repeats what the server or the wire said and never guesses at a cause.
"""

from __future__ import annotations

from collections.abc import Mapping

from legato.report.lookup import Summary, count, items, number, text

LONGEST_ERROR = 300  # characters; a server may answer with a whole page

STATUS_WORDS = {
    "http_error": "HTTP error",
    "timeout": "timed out",
    "aborted": "cut off",
    "protocol_error": "broken protocol",
    "not_streaming": "not streaming",
}


def failure_lines(summary: Summary) -> list[tuple[str, str]]:
    """(how many of which kind, the first error of that kind), the most frequent first."""
    kinds = [kind for kind in items(summary, "failures") if isinstance(kind, Mapping)]
    if not kinds:
        ended = {name: count(summary, "streams", name) for name in ("failed", "not_streaming")}
        # Those that the client left open did not fail.
        cut = count(summary, "streams", "aborted") - count(summary, "streams", "left_open")
        ended["aborted"] = max(0, cut)
        kinds = [{"status": status, "count": n} for status, n in ended.items() if n]
    kinds.sort(key=lambda kind: -count(kind, "count"))
    return [(f"{count(kind, 'count'):,} × {_name(kind)}", _error(kind)) for kind in kinds]


def _name(kind: Summary) -> str:
    status, http_status = text(kind, "status") or "failed", number(kind, "http_status")
    if status == "http_error" and http_status:
        return f"HTTP {http_status:.0f}"
    return STATUS_WORDS.get(status, status)


def _error(kind: Summary) -> str:
    # The name stands before it already.
    return _shortened((text(kind, "error") or "").removeprefix(f"{_name(kind)}: "))


def _shortened(error: str) -> str:
    one_line = " ".join(error.split())
    return one_line if len(one_line) <= LONGEST_ERROR else f"{one_line[: LONGEST_ERROR - 1]}…"
