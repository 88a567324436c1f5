"""Results of vLLM's `bench serve` saved with `--save-result --save-detailed`."""

from __future__ import annotations

from datetime import datetime
from itertools import accumulate
from typing import Any

from legato.errors import UsageError
from legato.exchange.imported import (
    NO_CONNECTIONS,
    NO_KERNEL_STAMPS,
    NS_PER_S,
    Imported,
    Times,
    numbers,
    spread,
    value,
    whole,
)
from legato.recording import (
    CONTENT,
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    ROLE,
    Stream,
)

MISSING = [
    NO_KERNEL_STAMPS,
    "which messages held tokens: where an answer has one or two messages more than tokens, the "
    "first of a chat is taken for its role and the last one for its finish mark; otherwise "
    "tokens are spread evenly",
    "intended send times: waiting for a slot or a late client is not seen",
    "the end of a response: usage and end marks",
    NO_CONNECTIONS,
]
NO_STARTS = "send times: this version did not save them, so all streams seem to start at once"


def recognises(document: Any) -> bool:
    return isinstance(document, dict) and "total_input_tokens" in document and "backend" in document


def read(document: Any) -> Imported:
    if not isinstance(document.get("itls"), list):
        raise UsageError(
            "the result holds only totals: run 'vllm bench serve' with --save-result and "
            "--save-detailed"
        )
    chat = "chat" in str(document["backend"])
    ttfts_s = numbers(document, "ttfts", where="the result")
    missing = list(MISSING)
    if document.get("start_times"):
        starts_s = numbers(document, "start_times", where="the result")
    else:
        starts_s = [0] * len(ttfts_s)
        missing.insert(0, NO_STARTS)
    offset_s = _epoch_s(document) - max(starts_s, default=0.0)
    streams = [
        _stream(document, i, round((starts_s[i] + offset_s) * NS_PER_S), ttft_s, chat=chat)
        for i, ttft_s in enumerate(ttfts_s)
    ]
    return Imported("vllm", streams, _settings(document, chat=chat), missing)


def _settings(document: Any, *, chat: bool) -> dict[str, Any]:
    rate = document.get("request_rate")
    settings = {
        "model": document.get("model_id"),
        "api": "chat" if chat else "completions",
        "concurrency": whole(document, "max_concurrency"),
        "rate": rate if isinstance(rate, int | float) else None,
        "requests": whole(document, "num_prompts"),
        "stamps": "user",
    }
    if settings["concurrency"] and settings["rate"] is None:
        settings["mode"] = "closed"
    return {name: found for name, found in settings.items() if found is not None}


def _epoch_s(document: Any) -> float:
    """When the result was written, by its own date: its clock starts at no known moment."""
    try:
        return datetime.strptime(str(document.get("date")), "%Y%m%d-%H%M%S").timestamp()
    except ValueError:
        return 0.0


def _stream(document: Any, i: int, sent_ns: int, ttft_s: float, *, chat: bool) -> Stream:
    where = f"request {i}"
    error = str(_of_request(document, "errors", i) or "").strip()
    gaps_s = numbers(document, "itls", i, where=where)
    total = whole({"n": _of_request(document, "output_lens", i)}, "n") or 0
    times, source = _times(ttft_s, gaps_s, total, chat=chat)
    last_ns = times.arrival_ns[-1] if times.arrival_ns else 0
    return Stream(
        stream_id=0,
        model=str(document.get("model_id") or ""),
        api="chat" if chat else "completions",
        scheduled_ns=sent_ns,
        sent_ns=sent_ns,
        ended_ns=sent_ns + last_ns,
        status=_status(error, times),
        error=error.splitlines()[-1] if error else None,
        prompt_tokens=whole({"n": _of_request(document, "input_lens", i)}, "n"),
        output_tokens=total or None,
        token_source=source,
        **times.columns(),
    )


def _of_request(document: Any, name: str, i: int) -> Any:
    listed = document.get(name)
    return value(listed, i, where=f"the list {name!r}") if isinstance(listed, list) else None


def _status(error: str, times: Times) -> str:
    if not error:
        return "ok" if times.arrival_ns else "http_error"
    # A refused request has the reason of its status, one that broke off a traceback.
    return "aborted" if times.arrival_ns or "\n" in error else "http_error"


def _times(
    ttft_s: float, gaps_s: list[int | float], total: int, *, chat: bool
) -> tuple[Times, str]:
    """A sample a message that holds `choices`: a chat's role and a lone finish mark count."""
    if ttft_s <= 0:
        return Times(), "chunks"
    arrival_ns = [round(s * NS_PER_S) for s in accumulate([ttft_s, *gaps_s])]
    count, extra = len(arrival_ns), len(arrival_ns) - total
    role = chat and extra in (1, 2)
    finish = extra == (2 if chat else 1)
    tokens, source = spread(total, count - role - finish)
    kind = [ROLE] * role + [CONTENT] * len(tokens) + [FINISH] * finish
    flags = [HAS_CHOICES | EMPTY] * role + [HAS_CHOICES] * len(tokens)
    flags += [HAS_CHOICES | EMPTY | HAS_FINISH] * finish
    return Times(arrival_ns, [0] * role + tokens + [0] * finish, kind, flags), source
