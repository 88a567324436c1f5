"""The requests a worker sends, by number: bodies made from a template and prompts, each with a
salt of its own unless the user wants caches to help.

A worker makes a request between two reads, so making one is a slice and a join, never a draw of
words. Neither numpy nor pyarrow is loaded here.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass, field
from functools import cached_property

# What a template has in the places of the prompt, of the salt and of the answer's length.
PROMPT_MARK = "\x00prompt\x00"
SALT_MARK = "\x00salt\x00"
OUTPUT_MARK = 1_618_033_988

SALT_WORDS = 4
_POOL_WORDS = 65_536


@dataclass(frozen=True, slots=True)
class Row:
    """One request of a plan: lengths in tokens, and the group whose prefix it shares."""

    prompt_tokens: int
    output_tokens: int | None
    prefix_group: int | None = None


@dataclass(frozen=True)
class Book:
    """Either `rows` of synthetic prompts, or `bodies` that are whole but for the salt."""

    head: str = field(repr=False)  # the HTTP head without Content-Length; it holds the key
    template: str = ""
    words: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    bodies: tuple[str, ...] = field(default=(), repr=False)
    prefix_tokens: int = 0
    seed: int = 0  # of the words
    salt_seed: int | None = None  # None: no salt

    def request(self, number: int) -> bytes:
        """The whole HTTP request with this number in the run."""
        body = (self._made(number) if self.rows else self._whole(number)).encode()
        return f"{self.head}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body

    def _whole(self, number: int) -> str:
        body = self.bodies[number % len(self.bodies)]
        salt = " ".join(self._salt(number))
        return body.replace(_SALT_IN_JSON, salt + " " if salt else "")

    def _made(self, number: int) -> str:
        row = self.rows[number % len(self.rows)]
        body = self.template
        if row.output_tokens is not None:
            body = body.replace(str(OUTPUT_MARK), str(row.output_tokens), 1)
        return body.replace(_PROMPT_IN_JSON, json.dumps(self.prompt(number))[1:-1], 1)

    def prompt(self, number: int) -> str:
        """The prompt's words: the group's prefix, the salt, then words of its own."""
        index = number % len(self.rows)
        row = self.rows[index]
        left = row.prompt_tokens
        parts = []
        if row.prefix_group is not None and self.prefix_tokens:
            shared = min(self.prefix_tokens, left)
            parts.append(self._slice(f"prefix/{row.prefix_group}", shared))
            left -= shared
        salt = self._salt(number)[:left]
        parts += salt
        left -= len(salt)
        if left:
            parts.append(self._slice(f"row/{index}", left))
        return " ".join(parts)

    def _salt(self, number: int) -> list[str]:
        """A few words that no other request of this or another run starts with."""
        if self.salt_seed is None:
            return []
        if not self.words:
            return [_digest(f"{self.salt_seed}/{number}").hex()]
        drawn = _digest(f"{self.salt_seed}/{number}")
        return [
            self.words[int.from_bytes(drawn[3 * i : 3 * i + 3]) % len(self.words)]
            for i in range(SALT_WORDS)
        ]

    def _slice(self, name: str, count: int) -> str:
        """`count` words of the pool from a place that depends on `name`; the pool goes round."""
        text, starts = self._pool
        at = int.from_bytes(_digest(f"{self.seed}/{name}")) % _POOL_WORDS
        pieces = []
        while count:
            taken = min(count, _POOL_WORDS - at)
            end = starts[at + taken] - 1 if at + taken < _POOL_WORDS else len(text)
            pieces.append(text[starts[at] : end])
            count -= taken
            at = 0
        return " ".join(pieces)

    @cached_property
    def _pool(self) -> tuple[str, list[int]]:
        """Many words in one text, and where each begins."""
        words = random.Random(self.seed).choices(self.words, k=_POOL_WORDS)
        starts, at = [], 0
        for word in words:
            starts.append(at)
            at += len(word) + 1
        return " ".join(words), starts


_PROMPT_IN_JSON = json.dumps(PROMPT_MARK)[1:-1]
_SALT_IN_JSON = json.dumps(SALT_MARK)[1:-1]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=12).digest()
