"""An attribution in words: a title and a sentence for each cause, and what would tell more."""

from __future__ import annotations

from legato.explain.attribution import Attribution, Facts
from legato.explain.part import (
    BURSTS,
    CHUNK_TOKENS,
    CLIENT,
    CONTEXT,
    IN_FLIGHT,
    POSITION,
    RETRANSMITS,
    STALLS,
    STARTS,
    STEP,
    UNEXPLAINED,
    Part,
)
from legato.report.figures import at_most_ms, ms, of, percent, whole

NS_PER_MS = 1e6

TITLES = {
    STEP: "decode step",
    POSITION: "output position",
    CONTEXT: "context length",
    IN_FLIGHT: "streams in flight",
    STARTS: "starts of others",
    CHUNK_TOKENS: "tokens in a chunk",
    BURSTS: "bursts",
    RETRANSMITS: "retransmits",
    CLIENT: "the client",
    STALLS: "stalls",
    UNEXPLAINED: "unexplained",
}


def title(part: Part, found: Attribution) -> str:
    if part.cause == POSITION and _together(found):
        return "position or context"
    return TITLES[part.cause]


def sentence(part: Part, found: Attribution) -> str:
    """What the figure means; where there is none, why, and what would give one."""
    match part.cause:
        case "step":
            return _step(part, found)
        case "position":
            return _position(part, found)
        case "context":
            return _context(part, found.facts)
        case "in_flight":
            return _in_flight(part, found.facts)
        case "starts":
            return _starts(part, found.facts)
        case "chunk_tokens":
            return _chunk_tokens(part)
        case "bursts":
            return _bursts(found.facts)
        case "retransmits":
            return _retransmits(part, found.facts)
        case "client":
            return _client(part, found.facts)
        case "stalls":
            return _stalls(found.facts)
        case _:
            return "what goes with none of these: scatter, and what cannot be seen from outside"


def advice(found: Attribution) -> list[str]:
    """What to measure for the causes that could not be told."""
    told = {part.cause: part.mean_ns is not None for part in found.parts}
    steps = []
    if not told[CONTEXT] and found.facts.prompt_tokens is not None:
        steps.append("prompts of several lengths would tell context from position")
    if not told[IN_FLIGHT]:
        steps.append("recordings at several loads, given together, would tell what load costs")
    if found.tail is None:
        steps.append("at least 1,000 gaps are needed to speak of the slowest 1 %")
    return steps


def _together(found: Attribution) -> bool:
    """Position and context are one figure: every prompt had one length."""
    context = next(part for part in found.parts if part.cause == CONTEXT)
    return context.mean_ns is None and found.facts.prompt_tokens is not None


def _step(part: Part, found: Attribution) -> str:
    most = found.facts.in_flight[1]
    load = next(p for p in found.parts if p.cause == IN_FLIGHT)
    alone = load.mean_ns is not None or most == 1
    where = "with one stream open" if alone else f"at this run's load (at most {most:,} streams)"
    return f"at the start of an answer, {where}, a chunk takes {_time(part.effect_ns)}"


def _position(part: Part, found: Attribution) -> str:
    if part.mean_ns is None:
        return "every gap is at one position: it cannot be told from the decode step"
    if not part.is_clear:
        return _nothing("answers do not slow down as they grow", part)
    verb = "grows" if part.mean_ns > 0 else "shrinks"
    reason = "; prompts had one length, so context may be the cause" if _together(found) else ""
    return f"a gap {verb} by {_time(part.effect_ns)} with each token before it{reason}"


def _context(part: Part, facts: Facts) -> str:
    prompt = facts.prompt_tokens
    if prompt is None:
        return "unknown: the recording lacks the length of prompts"
    if part.mean_ns is None:
        return f"every prompt had {_range(prompt)} tokens: it cannot be told from position"
    if not part.is_clear:
        return _nothing("longer contexts are not slower", part)
    verb = "grows" if part.mean_ns > 0 else "shrinks"
    return f"a gap {verb} by {_time(part.effect_ns)} with each token of prompt and answer"


def _in_flight(part: Part, facts: Facts) -> str:
    if part.mean_ns is None:
        return f"the load hardly varied ({_range(facts.in_flight)} streams): it is in the step"
    if not part.is_clear:
        return _nothing("gaps do not grow with the number of open streams", part)
    verb = "grows" if part.mean_ns > 0 else "shrinks"
    return f"a gap {verb} by {_time(part.effect_ns)} with each other open stream"


def _starts(part: Part, facts: Facts) -> str:
    if part.mean_ns is None:
        if not facts.starts:
            return "no request was sent while another stream was receiving"
        return "starts could not be told from the other causes"
    if not part.is_clear:
        return _nothing("a stream that starts does not hold up the others", part)
    verb = "holds up" if part.mean_ns > 0 else "speeds up"
    return f"each start {verb} every other stream by {_time(part.effect_ns)} (prefill)"


def _chunk_tokens(part: Part) -> str:
    if part.mean_ns is None:
        return "every chunk held equally many tokens, or how many is not known"
    if not part.is_clear:
        return _nothing("a chunk with more tokens does not take longer", part)
    return f"each further token in a chunk adds {_time(part.effect_ns)}"


def _bursts(facts: Facts) -> str:
    if not facts.burst_share:
        return "every chunk was sent alone"
    return (
        f"{percent(facts.burst_share)} of reads held several chunks sent together: that holds "
        f"tokens back by about {_time(facts.held_ns)}, and moves time between gaps"
    )


def _retransmits(part: Part, facts: Facts) -> str:
    if facts.retransmitting is None:
        return "unknown: the recording lacks counts of retransmits"
    if not facts.retransmitting:
        return "no connection had one"
    if part.mean_ns is None:
        return "every stream had some: they cannot be told from the rest"
    if not part.is_clear:
        return _nothing("streams with retransmits are not slower than the others", part)
    return "streams with retransmits are slower than the others by this"


def _client(part: Part, facts: Facts) -> str:
    reach = at_most_ms((part.half_width_ns or 0.0) / NS_PER_MS)
    merged = facts.merged_share
    late = f"{percent(merged)} of gaps were merged by late reads; " if merged else ""
    return f"{late}arrival times leave the mean gap unsure by at most {reach}"


def _stalls(facts: Facts) -> str:
    count, shared = facts.stalls, facts.shared_stalls
    if not count:
        return "no gap was longer than 100 ms and five times its stream's median"
    most = "all" if shared == count else f"{shared:,}"
    with_others = f"; {most} hit most open streams at once" if shared else ", each on its own"
    return f"{of(count, 'gap')} stood still{with_others}; no cause is seen from outside"


def _nothing(said: str, part: Part) -> str:
    interval = part.interval_ns
    if interval is None:
        return f"{said}, as far as fewer than 5 streams can tell"
    return f"{said}: the interval holds zero"


def _time(value_ns: float | None) -> str:
    return ms(None if value_ns is None else abs(value_ns) / NS_PER_MS)


def _range(ends: tuple[int, int]) -> str:
    low, high = (whole(end) for end in ends)
    return low if low == high else f"{low} to {high}"
