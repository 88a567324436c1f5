"""The pattern: everything that decides what the metronome sends and when, in one value.

Every field is also a command-line option and may be replaced for one request by the body's
"metronome" object, so a field is described once, here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from legato.errors import UsageError

FAULTS = (
    "none",
    "http_error",
    "refuse",
    "hang",
    "reset",
    "close",
    "half_event",
    "garbage",
    "garbage_event",
    "garbage_head",
    "long_line",
    "wrong_type",
    "no_done",
    "no_end",
    "trickle",
)


class PatternError(UsageError):
    """A pattern that makes no sense. A request's JSON names its fields as they are; the command
    line says the same `as_options`."""

    def __init__(self, text: str, *names: str, value: object = None) -> None:
        super().__init__(text.format(*names, value=value))
        self._text, self._names, self._value = text, names, value

    def as_options(self) -> UsageError:
        options = [option_of(name) for name in self._names]
        return UsageError(self._text.format(*options, value=self._value))


def option_of(name: str) -> str:
    """The command-line option of a field."""
    return "--" + name.replace("_", "-")


def _option(
    default: Any, about: str, *, least: float = 0, most: float = 1e12, among: tuple[str, ...] = ()
) -> Any:
    """A field with what validation and the command line need to know of it."""
    return field(
        default=default,
        metadata={"about": about, "least": least, "most": most, "among": among},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """What is sent and when; raises PatternError where a value makes no sense."""

    # --- pace
    gap_ms: float = _option(10.0, "mean time from one token to the next")
    draw: str = _option(
        "constant",
        "how gaps are drawn around their mean",
        among=("constant", "normal", "lognormal", "gamma"),
    )
    spread: float = _option(0.2, "standard deviation of drawn gaps, as a share of the mean")
    seed: int = _option(1, "seed of everything drawn; a stream draws from (seed, its number)")
    per_position_us: float = _option(0.0, "added to a gap for each token already in the answer")
    per_context_us: float = _option(0.0, "added to a gap for each token of prompt and answer")
    per_stream_us: float = _option(0.0, "added to a gap for each other open stream")
    interference_ms: float = _option(0.0, "how long a starting stream holds up all the others")
    stall_ms: float = _option(0.0, "length of a stall")
    stall_at: int | None = _option(None, "stall before this token (counted from 0)", least=1)
    stall_chance: float = _option(0.0, "chance of a stall before each token", most=1)
    stall_scope: str = _option(
        "stream", "whom a stall holds up: its stream, or all open ones", among=("stream", "all")
    )
    stall_every: int = _option(1, "only each k-th stream has stalls", least=1)

    # --- start
    first_token_ms: float = _option(20.0, "time from the request's last byte to the first token")
    first_token_spread_ms: float = _option(
        0.0,
        "added to that: a time drawn evenly from 0 to this, so that streams do not march in step",
    )
    per_prompt_token_ms: float = _option(0.0, "added to that for each word of the prompt")
    cold_ms: float = _option(0.0, "added to that for the first request after the start")
    role_early: bool = _option(False, "send the role chunk at once, not with the first token")

    # --- content
    tokens: int = _option(100, "tokens of an answer, unless the request asks for fewer", least=1)
    tokens_per_event: int = _option(1, "tokens in one event", least=1, most=65535)
    events_per_write: int = _option(1, "events in one write", least=1, most=65535)
    reasoning_tokens: int = _option(0, "how many of the first tokens are reasoning")
    tool_tokens: int = _option(0, "how many of the last tokens are arguments of a tool call")

    # --- end
    finish_with_last: bool = _option(False, "the last token's event carries the finish reason")
    usage: bool = _option(True, "send usage where it is asked for")
    usage_late_ms: float = _option(0.0, "time from the last token to usage")
    done_late_ms: float = _option(0.0, "time from usage (or the last token) to [DONE]")

    # --- wire
    line_ending: str = _option("lf", "line ending inside events", among=("lf", "crlf"))
    comments: bool = _option(False, "a comment line before each event")
    framing: str = _option(
        "chunked", "how the end of the body is marked", among=("chunked", "close")
    )
    chunk_extensions: bool = _option(False, "an extension on each HTTP chunk")
    trailers: bool = _option(False, "trailer fields after the last HTTP chunk")
    terminators: bool = _option(
        False, "each event holds the bytes of a last HTTP chunk and each write ends with them"
    )
    split: str = _option(
        "none",
        "cut each event in two, at the next byte each time: into two writes or two HTTP chunks",
        among=("none", "writes", "chunks"),
    )

    # --- fault
    fault: str = _option("none", "what goes wrong", among=FAULTS)
    fault_every: int = _option(1, "only each k-th request meets the fault", least=1)
    fault_at: int | None = _option(None, "token at which it happens (default: half way)")
    fault_status: int = _option(500, "status of the fault http_error", least=400, most=599)
    retry_after_s: int = _option(1, "Retry-After of statuses 429 and 503")
    long_line_bytes: int = _option(10_000_000, "length of the line of the fault long_line")
    trickle_ms: float = _option(5.0, "time between the bytes of the fault trickle")

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            _check(item, getattr(self, item.name))
        if self.stall_ms and self.stall_at is None and not self.stall_chance:
            raise PatternError(
                "{} needs {} or {} to say where a stall comes",
                *("stall_ms", "stall_at", "stall_chance"),
            )
        if (self.stall_at is not None or self.stall_chance) and not self.stall_ms:
            raise PatternError(
                "{} and {} need {}, the length of a stall",
                *("stall_at", "stall_chance", "stall_ms"),
            )


def fields() -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(Pattern)


def replaced(pattern: Pattern, changes: Mapping[str, Any]) -> Pattern:
    """The pattern with some fields changed, as a request's "metronome" object asks."""
    known = {item.name for item in fields()}
    for name in changes:
        if name not in known:
            raise UsageError(f"the metronome has no field {name!r}; see docs/metronome.md")
    return dataclasses.replace(pattern, **changes)


def as_dict(pattern: Pattern) -> dict[str, Any]:
    return dataclasses.asdict(pattern)


def _check(item: dataclasses.Field[Any], value: Any) -> None:
    if value is None and "None" in str(item.type):
        return
    among = item.metadata["among"]
    if among:
        if value not in among:
            known = ", ".join(among)
            raise PatternError(
                f"{{}} is {{value!r}}; it must be one of {known}", item.name, value=value
            )
        return
    kind = str(item.type).removesuffix(" | None")
    if kind == "bool":
        if not isinstance(value, bool):
            raise PatternError("{} is {value!r}; it must be true or false", item.name, value=value)
        return
    _check_number(item, kind, value)


def _check_number(item: dataclasses.Field[Any], kind: str, value: Any) -> None:
    right = int if kind == "int" else (int, float)
    if isinstance(value, bool) or not isinstance(value, right) or not math.isfinite(value):
        noun = "a whole number" if kind == "int" else "a number"
        raise PatternError(f"{{}} is {{value!r}}; it must be {noun}", item.name, value=value)
    least, most = item.metadata["least"], item.metadata["most"]
    if not least <= value <= most:
        words = f"it must be from {least:g} to {most:g}"
        raise PatternError(f"{{}} is {{value!r}}; {words}", item.name, value=value)
