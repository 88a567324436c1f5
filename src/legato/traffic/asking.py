"""What a run asks: from the user's words (lengths, files, traces, shared prefixes) to the book of
requests that its workers send."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from legato.apis import Api
from legato.errors import UsageError
from legato.traffic import prompts
from legato.traffic.book import OUTPUT_MARK, PROMPT_MARK, SALT_MARK, Book, Row
from legato.traffic.lengths import Lengths, fixed
from legato.traffic.promptfile import Entry
from legato.traffic.traces import Arrival
from legato.wire.tokens import Tokenizer

_MOST_ROWS = 100_000  # of drawn lengths; a longer run goes round
_FEWEST_ROWS = 1_024

DEFAULT_PROMPT = fixed(256)
DEFAULT_OUTPUT = fixed(128)


@dataclass(frozen=True, slots=True)
class Asking:
    """What the user wants asked."""

    prompt_tokens: Lengths = DEFAULT_PROMPT
    output_tokens: Lengths | None = DEFAULT_OUTPUT
    prompt_file: str | None = None
    entries: tuple[Entry, ...] = ()  # what that file holds
    prefix_share: float = 0.0  # of a prompt, shared by its group
    prefix_groups: int = 1
    cache_friendly: bool = False
    seed: int = 0

    def settings(self, traced: bool) -> dict[str, Any]:
        """As the recording has it; a trace has lengths of its own."""
        made = self.prompt_file is None and not traced
        output = None if traced else self.output_tokens
        return {
            "prompt_tokens": self.prompt_tokens.fixed if made else None,
            "prompt_lengths": self.prompt_tokens.text if made else None,
            "prompt_file": self.prompt_file,
            "output_tokens": output and output.fixed,
            "output_lengths": output and output.text,
            "prefix_share": self.prefix_share or None,
            "prefix_groups": self.prefix_groups if self.prefix_share else None,
            "cache_friendly": self.cache_friendly,
            "seed": self.seed,
        }

    @property
    def output_mark(self) -> int | None:
        """What stands in a body for the answer's length while requests are planned."""
        if self.output_tokens is None:
            return None
        return self.output_tokens.fixed or OUTPUT_MARK


@dataclass(frozen=True, slots=True)
class Planned:
    """The requests, and whether the prompts have exactly as many tokens as was asked."""

    book: Book
    exact: bool


def plan(
    asking: Asking,
    head: str,
    api: Api,
    model: str,
    extra: Mapping[str, Any],
    *,
    requests: int | None,
    trace: Sequence[Arrival] = (),
    tokenizer: Tokenizer | None = None,
) -> Planned:
    """`extra` are the fields every body gets beside the API's own."""
    # The salt differs from run to run, or the second run of a seed would meet a warm cache.
    salt_seed = None if asking.cache_friendly else random.SystemRandom().getrandbits(48)
    if asking.prompt_file is not None:
        bodies = tuple(_file_body(entry, asking, api, model, extra) for entry in asking.entries)
        return Planned(Book(head, bodies=bodies, salt_seed=salt_seed), exact=False)
    words, exact = prompts.vocabulary(tokenizer)
    output = OUTPUT_MARK if trace else asking.output_mark
    body = json.dumps(api.body(model, PROMPT_MARK, output, extra))
    if json.dumps(PROMPT_MARK)[1:-1] not in body:
        raise UsageError("--extra-body replaces the prompt; give prompts by --prompt-file instead")
    rows = _trace_rows(trace) if trace else _rows(asking, requests)
    longest = max(row.prompt_tokens for row in rows)
    book = Book(
        head,
        template=body,
        words=words,
        rows=rows,
        prefix_tokens=round(asking.prefix_share * longest),
        seed=asking.seed,
        salt_seed=salt_seed,
    )
    return Planned(book, exact)


def _rows(asking: Asking, requests: int | None) -> tuple[Row, ...]:
    """Lengths and groups, drawn once for the whole run."""
    varies = asking.prompt_tokens.fixed is None or asking.prefix_share
    if asking.output_tokens is not None:
        varies = varies or asking.output_tokens.fixed is None
    count = min(_MOST_ROWS, requests or _FEWEST_ROWS) if varies else _FEWEST_ROWS
    prompt = asking.prompt_tokens.draw(count, f"{asking.seed}/prompt")
    output: Sequence[int | None] = [None] * count
    if asking.output_tokens is not None:
        output = asking.output_tokens.draw(count, f"{asking.seed}/output")
    generator = random.Random(f"{asking.seed}/group")
    groups = [
        generator.randrange(asking.prefix_groups) if asking.prefix_share else None
        for _ in range(count)
    ]
    return tuple(Row(p, o, g) for p, o, g in zip(prompt, output, groups, strict=True))


def _trace_rows(trace: Sequence[Arrival]) -> tuple[Row, ...]:
    return tuple(Row(arrival.prompt_tokens, arrival.output_tokens) for arrival in trace)


def _file_body(entry: Entry, asking: Asking, api: Api, model: str, extra: Mapping[str, Any]) -> str:
    fields = dict(entry.fields or {})
    if entry.prompt is None:
        if "messages" not in api.body(model, "", None, {}):
            raise UsageError(f"--prompt-file holds chat messages, which --api {api.name} has not")
        fields["messages"] = _salted(fields["messages"])
    output = asking.output_tokens.fixed if asking.output_tokens is not None else None
    prompt = SALT_MARK + (entry.prompt or "")
    return json.dumps(api.body(model, prompt, output, {**extra, **fields}))


def _salted(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The salt goes before the first text of the conversation: a prefix cache ends there."""
    for at, message in enumerate(messages):
        if isinstance(message.get("content"), str):
            marked = {**message, "content": SALT_MARK + message["content"]}
            return [*messages[:at], marked, *messages[at + 1 :]]
    return messages
