"""A summary in sentences: what a person would say after looking at the figures.

Pure functions of a summary. A run is called smooth only when everything that could contradict it
is known and does not; an unknown is never taken for a good sign.
"""

from __future__ import annotations

from legato.report.figures import at_most_ms, ms, of, percent, significant, whole, within
from legato.report.lookup import (
    Summary,
    count,
    finite,
    interval,
    items,
    number,
    setting,
    text,
    value,
)

# Above these a run is not called smooth. A few tokens that share an arrival go unnoticed by a
# reader; a p99 of twice the median is the lower end of what the field calls a healthy tail.
BURST_SHARE_LIMIT = 0.05
TOKENS_PER_CHUNK_LIMIT = 1.05
SPREAD_LIMIT = 2.0
CV_LIMIT = 0.5

# An error over this share of a figure is said with the figure: the verdict's own limit.
ERROR_LIMIT = 0.1
SHARED_LIMIT = 0.9  # from this share of stalls on, all of them are called shared

STALL_FLOOR_MS = 100  # no gap below it counts as a stall

# What `legato bench` without a URL measures: the metronome as it is set without options.
EMBEDDED = "built-in metronome (set: 10 ms a token, first after 20 ms)"


def subject(summary: Summary) -> str:
    """What was measured, in one line."""
    streams, rate = setting(summary, "concurrency"), setting(summary, "rate")
    duration_s = number(summary, "run", "duration_s")
    embedded, warmup = setting(summary, "embedded") is True, finite(setting(summary, "warmup"))
    parts = [
        EMBEDDED if embedded else text(summary, "run", "settings", "url"),
        None if embedded else text(summary, "run", "settings", "model"),
        None if finite(streams) is None else f"{whole(streams)} at once",
        None if finite(rate) is None else f"{significant(rate)} requests/s",
        of(count(summary, "streams", "total"), "request")
        + (f" after {whole(warmup)} of warm-up" if warmup else ""),
        None if duration_s is None else f"in {ms(duration_s * 1000)}",
    ]
    return " · ".join(part for part in parts if part)


def verdict_words(summary: Summary) -> list[str]:
    """The run in sentences, the most important first; none ends with a full stop."""
    words = [target_words(summary), partial_words(summary)]
    if number(summary, "itl_ms", "n"):
        words += [*pace_words(summary), client_words(summary), token_words(summary)]
    words.append(ending_words(summary))
    return [sentence for sentence in words if sentence]


def headline(summary: Summary) -> str:
    """The verdict in words and the main figure with its interval; then what is missing."""
    target, partial = target_words(summary), partial_words(summary)
    said: list[str | None]
    if not measured(summary):
        said = [target, partial]
    elif not number(summary, "itl_ms", "n"):
        said = ["no gaps to measure: no answer held a second token", target, partial]
    elif verdict(summary) == "failed":
        said = [target, _main_figure(summary), partial]
    elif verdict(summary) == "invalid":
        said = ["do not quote these figures", _main_figure(summary), target, partial]
    else:
        said = [target, pace_words(summary)[0], _main_figure(summary), partial]
    return " ".join(f"{_capital(sentence)}." for sentence in said if sentence)


def verdict(summary: Summary) -> str:
    """`failed` when no stream succeeded, else the instrument's verdict, else `unknown`. Streams
    that were open when the user stopped the run have not failed."""
    if _all_left_open(summary):
        return text(summary, "instrument", "verdict") or "unknown"
    if not measured(summary) or number(summary, "streams", "ok") == 0:
        return "failed"
    return text(summary, "instrument", "verdict") or "unknown"


def measured(summary: Summary) -> bool:
    """Whether any stream gave something to measure."""
    return count(summary, "streams", "ok") > 0 or bool(number(summary, "itl_ms", "n"))


def target_words(summary: Summary) -> str | None:
    """What is wrong with the endpoint as a whole, or with some of its answers."""
    total, ok = count(summary, "streams", "total"), count(summary, "streams", "ok")
    silent = count(summary, "streams", "not_streaming")
    failed = total - ok - silent - count(summary, "streams", "left_open")
    if not total and not measured(summary):
        return "nothing was measured: no request was completed"
    if _all_left_open(summary):
        return None if measured(summary) else "nothing was measured: it was stopped too soon"
    if not measured(summary) and silent and silent == total:
        return "does not stream: each answer came in one piece, so there is no gap to measure"
    if verdict(summary) == "failed":
        return "every stream failed" + (f": {whole(total)} of {whole(total)}" if total else "")
    said = []
    if silent:
        said.append(f"{whole(silent)} of {whole(total)} answers did not stream")
    if failed > 0:
        said.append(
            f"{whole(failed)} of {whole(total)} streams failed: the gaps they gave count,"
            " but TPOT, decode and E2E leave them out"
        )
    return "; ".join(said) or None


def _all_left_open(summary: Summary) -> bool:
    total, left = count(summary, "streams", "total"), count(summary, "streams", "left_open")
    return 0 < total == left


def partial_words(summary: Summary) -> str | None:
    if not value(summary, "run", "partial"):
        return None
    ok, left = count(summary, "streams", "ok"), count(summary, "streams", "left_open")
    asked = setting(summary, "requests")
    known = isinstance(asked, int) and not isinstance(asked, bool)
    done = f"{whole(ok)} of {of(asked, 'request')}" if known else of(ok, "request")
    were = "was" if left == 1 else "were"
    still = f"; {whole(left)} {were} open when it stopped (their gaps count)" if left else ""
    return f"partial run: {done} completed{still}"


def pace_words(summary: Summary) -> list[str]:
    """How the tokens came: bursts, stalls, unevenness; `smooth` when there is none of it."""
    if verdict(summary) == "invalid":
        return ["smoothness not judged: the run is invalid"]
    flaws = [flaw for flaw in (burst_words(summary), stall_words(summary)) if flaw]
    if flaws:
        return flaws
    uneven = spread_words(summary)
    if uneven:
        return [uneven]
    if _uneven_by_error(summary):
        return ["smoothness not judged: the client's own error is as large as the unevenness"]
    if verdict(summary) == "failed":
        return ["smoothness not judged: no stream ended well"]
    if not _smoothness_known(summary):
        return ["smoothness unknown: too few gaps to tell"]
    return ["smooth" if verdict(summary) == "valid" else "smooth, as far as the client could tell"]


def burst_words(summary: Summary) -> str | None:
    share = number(summary, "smoothness", "burst_share") or 0.0
    per_chunk = number(summary, "tokens_per_chunk", "mean") or 1.0
    if share <= BURST_SHARE_LIMIT and per_chunk <= TOKENS_PER_CHUNK_LIMIT:
        return None
    # In groups of k, k - 1 of k gaps lie inside a group.
    together = max(per_chunk, 1 / (1 - share) if share < 1 else per_chunk)
    if together < 1.5:
        apart = max(share, 1 - 1 / per_chunk)
        return f"partly bursty: {percent(apart)} of tokens came together with the one before"
    about = "" if abs(together - round(together)) < 0.15 else "about "
    where = "inside one event" if per_chunk > 0.75 * together else "several events in one segment"
    return f"bursty: {about}{of(round(together), 'token')} at a time, {where}"


def stall_words(summary: Summary) -> str | None:
    stalls = count(summary, "smoothness", "stall_count")
    if not stalls:
        return None
    longest_ms = number(summary, "chunk_gap_ms", "max")
    longest = "" if longest_ms is None else f", the longest {ms(longest_ms)}"
    said = f"{of(stalls, 'stall')} over {STALL_FLOOR_MS} ms{_where_stalled(summary)}{longest}"
    return f"{said}{_shared_words(summary)}"


def stalls_shared(summary: Summary) -> bool:
    """Whether the stalls were pauses of the whole server (or of the path to it)."""
    return (number(summary, "smoothness", "shared_stall_share") or 0.0) >= SHARED_LIMIT


def _shared_words(summary: Summary) -> str:
    share = number(summary, "smoothness", "shared_stall_share")
    moments = count(summary, "smoothness", "stall_moments")
    if not share or not moments:
        return ""
    if stalls_shared(summary):
        at_once = "nearly all open streams at once: the server paused, not a request"
        return f"; in {of(moments, 'moment')}, {at_once}"
    return f"; {percent(share)} of them at moments that stopped nearly all open streams"


def _where_stalled(summary: Summary) -> str:
    hit, total = number(summary, "smoothness", "streams_with_stalls"), _streams_with_gaps(summary)
    return "" if hit is None or total is None else f" in {whole(hit)} of {of(total, 'stream')}"


def _streams_with_gaps(summary: Summary) -> int | None:
    if number(summary, "streams", "total") is None:
        return None
    return count(summary, "streams", "total") - count(summary, "streams", "not_streaming")


def spread_words(summary: Summary) -> str | None:
    """Unevenness that is neither burst nor stall, where the client's own error is too small to
    have made it."""
    ratio, cv, error = _spread(summary)
    if ratio is not None and ratio - error > SPREAD_LIMIT:
        return f"uneven: {_slow_words(summary, ratio)}"
    if cv is not None and cv > CV_LIMIT and error <= CV_LIMIT:
        return f"uneven: gaps vary by {percent(cv)} of their mean"
    return None


def _slow_words(summary: Summary, ratio: float) -> str:
    share = number(summary, "smoothness", "slow_share")
    typical_ms = number(summary, "smoothness", "slow_gap_ms")
    if share and typical_ms is not None:
        return f"{percent(share)} of gaps took over twice the median, typically {ms(typical_ms)}"
    tail = "slowest 1 %" if number(summary, "itl_ms", "p99") is not None else "slowest"
    return f"the {tail} of gaps took over {significant(ratio)} × the median"


def _uneven_by_error(summary: Summary) -> bool:
    """Whether gaps look uneven, but by no more than the client may have made of it."""
    ratio, cv, _ = _spread(summary)
    looks = (ratio is not None and ratio > SPREAD_LIMIT) or (cv is not None and cv > CV_LIMIT)
    return looks and spread_words(summary) is None


def _spread(summary: Summary) -> tuple[float | None, float | None, float]:
    """(tail ÷ median, variation within a stream, the client's error ÷ median)."""
    p50 = number(summary, "itl_ms", "p50")
    column = "max" if number(summary, "itl_ms", "p99") is None else "p99"
    error = error_ms(summary, column) / p50 if p50 else 0.0
    return tail_ratio(summary), number(summary, "smoothness", "cv"), error


def tail_ratio(summary: Summary) -> float | None:
    """p99 over p50; where a p99 is not given, the largest gap over p50."""
    p50 = number(summary, "itl_ms", "p50")
    tail = number(summary, "itl_ms", "p99")
    tail = number(summary, "itl_ms", "max") if tail is None else tail
    return None if not p50 or tail is None else tail / p50


def error_ms(summary: Summary, column: str) -> float:
    """How far the gaps below a percentile may be from the truth; unknown counts as nothing."""
    which = column if column in ("p99", "max") else "p50"
    return (number(summary, "instrument", "error_us", which) or 0.0) / 1000


def calibrated(summary: Summary) -> bool:
    """Whether the error holds the floor that `legato calibrate` measured on this machine."""
    return number(summary, "run", "calibration", "floor_us", "p99") is not None


def _smoothness_known(summary: Summary) -> bool:
    known = (
        number(summary, "smoothness", "burst_share"),
        number(summary, "smoothness", "stall_count"),
        number(summary, "smoothness", "cv"),
        number(summary, "tokens_per_chunk", "mean"),
        tail_ratio(summary),
    )
    return None not in known


def client_words(summary: Summary) -> str | None:
    """How far the client leaves a gap from the truth. Without calibration only what this run's
    intervals and clock anchors tell is known, and no more than that is said."""
    p99_us, max_us = (number(summary, "instrument", "error_us", q) for q in ("p99", "max"))
    if p99_us is None:
        return None
    most = at_most_ms(p99_us / 1000)
    worst = "" if max_us is None or max_us <= p99_us else at_most_ms(max_us / 1000)
    if calibrated(summary):
        beyond = f", the one read latest within {worst}" if worst else ""
        return f"99 % of gaps are within {most} of the truth{beyond} (calibrated floor included)"
    beyond = f", {worst} to the one read latest" if worst else ""
    return f"late reads and the clock added at most {most} to 99 % of gaps{beyond}"


def token_words(summary: Summary) -> str | None:
    """A warning where tokens per chunk were not counted."""
    source = text(summary, "tokens", "source")
    guessed = count(summary, "tokens", "sources", "chunks")
    if source == "chunks":
        return "token counts are a guess: one per chunk"
    if guessed:
        return f"token counts of {of(guessed, 'stream')} are a guess: one per chunk"
    if source == "usage_spread":
        return "tokens per chunk are an estimate: the server's total spread over the chunks"
    return None


def ending_words(summary: Summary) -> str | None:
    """Answers that were whole but lack the end mark of their API."""
    without = count(summary, "streams", "without_done")
    return f"{of(without, 'answer')} ended without [DONE]" if without else None


def reader_words(summary: Summary) -> list[str]:
    """What someone who reads along at ten tokens a second would notice. The two start at
    different times, and say so."""
    fluidity = number(summary, "smoothness", "fluidity_index")
    wait_ms = number(summary, "smoothness", "reader_wait_ms")
    said = []
    if fluidity is not None:
        deadlines = "1 s from the send to the first token, then 100 ms each"
        said.append(f"{percent(fluidity)} of deadlines met ({deadlines})")
    if wait_ms:
        reader = "a reader who starts at the first token and takes ten a second"
        said.append(f"{reader} waits {ms(wait_ms)} an answer for late text")
    return said


def reasons(summary: Summary) -> list[str]:
    return [reason for reason in items(summary, "instrument", "reasons") if isinstance(reason, str)]


def _main_figure(summary: Summary) -> str:
    mean, p50, p99 = (number(summary, "itl_ms", key) for key in ("mean", "p50", "p99"))
    tail = "" if p99 is None else f", {_tail(p99, error_ms(summary, 'p99'))}"
    if p50 is None:
        return f"ITL averages {ms(mean)}{tail}; too few gaps for a median"
    # Where most tokens come together the median gap is nothing, and says nothing.
    if mean is not None and p50 < mean / 10:
        return f"ITL averages {ms(mean)} ({ms(p50)} at the median){tail}"
    ends = interval(summary, "itl_ms", "p50")
    around = "" if ends is None else within(*ends, p50, error_ms(summary, "p50"))
    certain = f" (95 % interval {around})" if around else ""
    return f"ITL is {ms(p50)} at the median{certain}{tail}"


def _tail(p99_ms: float, error: float) -> str:
    if error > ERROR_LIMIT * p99_ms:
        return f"p99 {ms(p99_ms)}, may be wrong by {at_most_ms(error)}"
    return f"{ms(p99_ms)} at p99"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
