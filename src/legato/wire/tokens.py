"""How many tokens each chunk holds, by the best source the stream offers.

The order is: usage in every chunk, token ids, log-probabilities, a tokenizer, the final usage
spread over the chunks, one a chunk. Role-only, empty, finish and usage chunks hold none.
"""

from __future__ import annotations

import shlex
import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol

from legato.apis.chunk import Chunk
from legato.errors import UsageError
from legato.recording import CONTENT, REASONING, TOOL


class Tokenizer(Protocol):
    """What is used of `tokenizers.Tokenizer`."""

    def encode(self, sequence: str, *, add_special_tokens: bool) -> Any: ...


def load_tokenizer(path: str) -> Tokenizer:
    """From a `tokenizer.json` or the folder that holds one (extra `tokenizer`)."""
    file = Path(path)
    if file.is_dir():
        file = file / "tokenizer.json"
    if not file.is_file():
        raise UsageError(f"there is no tokenizer at {file}")
    try:
        from tokenizers import Tokenizer as HuggingFace
    except ImportError:
        pip = f"{shlex.quote(sys.executable)} -m pip install tokenizers"
        raise UsageError(f"--tokenizer needs the tokenizers library: {pip}") from None
    try:
        tokenizer: Tokenizer = HuggingFace.from_file(str(file))
    except Exception as error:  # tokenizers raises bare Exception
        raise UsageError(f"{file} is not a readable tokenizer: {error}") from None
    return tokenizer


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens per chunk and where the figures come from."""

    tokens: list[int]
    source: str
    text_tokens: int | None = None
    retokens: list[int] | None = None


def count(chunks: Sequence[Chunk], tokenizer: Tokenizer | None = None) -> Counts:
    holding = [i for i, chunk in enumerate(chunks) if chunk.kind in (CONTENT, REASONING, TOOL)]
    tokens = [0] * len(chunks)
    held, source = _held(chunks, holding, tokenizer)
    for index, number in zip(holding, held, strict=True):
        tokens[index] = number
    if tokenizer is None:
        return Counts(tokens, source)
    texts = [chunk.text for chunk in chunks]
    retokens = [_encoded(tokenizer, text) if text else 0 for text in texts]
    return Counts(tokens, source, _encoded(tokenizer, "".join(texts)), retokens)


def _held(
    chunks: Sequence[Chunk], holding: list[int], tokenizer: Tokenizer | None
) -> tuple[list[int], str]:
    bearing = [chunks[i] for i in holding]
    totals = [chunk.output_tokens for chunk in bearing if chunk.output_tokens is not None]
    if len(totals) == len(bearing) and _runs(totals):
        return [b - a for a, b in pairwise([0, *totals])], "chunk_usage"
    if bearing and all(chunk.token_ids is not None for chunk in bearing):
        return [chunk.token_ids or 0 for chunk in bearing], "token_ids"
    if bearing and all(chunk.logprobs for chunk in bearing):
        return [chunk.logprobs or 0 for chunk in bearing], "logprobs"
    if tokenizer is not None:
        return _by_tokenizer([chunk.text for chunk in bearing], tokenizer), "tokenizer"
    total = next((c.output_tokens for c in reversed(chunks) if c.output_tokens is not None), None)
    if total and bearing:
        stopped = any(chunk.finish_reason == "stop" for chunk in chunks)
        spent = next((c.reasoning_tokens for c in reversed(chunks) if c.reasoning_tokens), 0)
        return _spread_apart(bearing, total, min(spent, total), stopped), "usage_spread"
    return [1] * len(bearing), "chunks"


def _runs(totals: list[int]) -> bool:
    """Is this a running count? One figure is the final one riding on its chunk, and some servers
    repeat the final one, or zeros, in every chunk."""
    return len(totals) > 1 and totals == sorted(totals) and totals[-1] > totals[0]


def _spread_apart(bearing: list[Chunk], total: int, spent: int, stopped: bool) -> list[int]:
    """Tokens spent on reasoning over the chunks of reasoning, the others over the others.
    Reasoning that the server keeps to itself is in no chunk."""
    reasoned = [chunk.kind == REASONING for chunk in bearing]
    if not spent or all(reasoned):
        return _spread(total, len(bearing), stopped)
    shown = sum(reasoned)
    of_reasoning = iter(_spread(spent, shown, False))
    of_answer = iter(_spread(total - spent, len(bearing) - shown, stopped))
    return [next(of_reasoning if is_reasoning else of_answer) for is_reasoning in reasoned]


def _spread(total: int, parts: int, stopped: bool) -> list[int]:
    """`total` as evenly as whole numbers allow. A server that stopped by itself counts the end
    token, which no chunk shows: that one is left out where it explains the difference. Where
    there are fewer tokens than chunks the first chunk holds one: it is when the first came."""
    if stopped and total == parts + 1:
        total = parts
    if total < parts:
        return [-(-(i + 1) * total // parts) + (-i * total // parts) for i in range(parts)]
    return [(i + 1) * total // parts - i * total // parts for i in range(parts)]


def _by_tokenizer(texts: list[str], tokenizer: Tokenizer) -> list[int]:
    """The whole answer is encoded, since pieces re-encode to more; a token belongs to the chunk
    that brought its last character."""
    ends = list(accumulate(len(text) for text in texts))
    tokens = [0] * len(texts)
    for start, end in tokenizer.encode("".join(texts), add_special_tokens=False).offsets:
        if end > start:
            tokens[min(bisect_left(ends, end), len(ends) - 1)] += 1
    return tokens


def _encoded(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)
