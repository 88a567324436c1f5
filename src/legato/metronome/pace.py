"""The pace: how long after one token the next one is due.

Pure but for the room, the state that open streams share; it never reads a clock.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from legato.metronome.pattern import Pattern

NS_PER_MS = 1_000_000
NS_PER_US = 1_000


@dataclass(slots=True)
class Room:
    """What the open streams share: their number, how far all of them have been held up, and how
    many events were cut in two."""

    open_streams: int = 0
    held_ns: int = 0
    cuts: int = 0


def first_token_ns(pattern: Pattern, number: int, prompt_tokens: int) -> int:
    """Time from the request to its first token; stream 0 is the cold one."""
    delay_ms = pattern.first_token_ms + pattern.per_prompt_token_ms * prompt_tokens
    if number == 0:
        delay_ms += pattern.cold_ms
    if pattern.first_token_spread_ms:
        delay_ms += _source(pattern, number, 2).random() * pattern.first_token_spread_ms
    return round(delay_ms * NS_PER_MS)


def gap_before(
    pattern: Pattern, number: int, prompt_tokens: int, room: Room
) -> Callable[[int], int]:
    """A function from a token's position in the answer to the gap before it, in ns.

    It is called once for each position, in order: a drawn gap takes the next draw.
    """
    drawn = _drawn(pattern, number)
    stalls = pattern.stall_ms and (number + 1) % pattern.stall_every == 0
    grows = pattern.per_position_us or pattern.per_context_us or pattern.per_stream_us
    if not stalls and not grows:
        return drawn
    stall = _stall(pattern, number, room) if stalls else _nothing
    per_position = (pattern.per_position_us + pattern.per_context_us) * NS_PER_US
    constant = pattern.per_context_us * NS_PER_US * prompt_tokens
    per_stream = pattern.per_stream_us * NS_PER_US

    def gap(position: int) -> int:
        grown = constant + per_position * position + per_stream * (room.open_streams - 1)
        return drawn(position) + round(grown) + stall(position)

    return gap


def _nothing(position: int) -> int:  # noqa: ARG001
    return 0


def _source(pattern: Pattern, number: int, purpose: int) -> random.Random:
    return random.Random((pattern.seed * 1_000_003 + number) * 8 + purpose)


def _drawn(pattern: Pattern, number: int) -> Callable[[int], int]:
    mean = pattern.gap_ms * NS_PER_MS
    if pattern.draw == "constant" or not pattern.spread or not mean:
        whole = round(mean)
        return lambda _position: whole
    source = _source(pattern, number, 0)
    if pattern.draw == "normal":
        deviation = mean * pattern.spread
        return lambda _position: max(0, round(source.gauss(mean, deviation)))
    variance = pattern.spread**2
    if pattern.draw == "lognormal":
        sigma = math.sqrt(math.log1p(variance))
        mu = math.log(mean) - sigma**2 / 2
        return lambda _position: round(source.lognormvariate(mu, sigma))
    shape, scale = 1 / variance, mean * variance
    return lambda _position: round(source.gammavariate(shape, scale))


def _stall(pattern: Pattern, number: int, room: Room) -> Callable[[int], int]:
    length = round(pattern.stall_ms * NS_PER_MS)
    source = _source(pattern, number, 1)
    everyone = pattern.stall_scope == "all"

    def stall(position: int) -> int:
        by_chance = pattern.stall_chance and source.random() < pattern.stall_chance
        if position != pattern.stall_at and not by_chance:
            return 0
        if everyone:
            room.held_ns += length  # the stalling stream is one of those it holds up
            return 0
        return length

    return stall
