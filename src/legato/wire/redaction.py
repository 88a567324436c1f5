"""Secrets that a server echoes are cut out of what is kept, also where the secret itself is no
longer known: a run leaves only salted digests of its secrets beside the capture."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SHOWN = "[key]"


@dataclass(frozen=True, slots=True)
class Redaction:
    salt: str = ""
    digests: tuple[tuple[int, str], ...] = ()  # (length, digest) of each secret, longest first

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redaction:
        salt = os.urandom(16).hex()
        known = sorted(set(secrets), key=len, reverse=True)
        return cls(salt, tuple((len(secret), _digest(salt, secret)) for secret in known))

    @classmethod
    def read(cls, document: dict[str, Any]) -> Redaction:
        return cls(document["salt"], tuple((n, text) for n, text in document["digests"]))

    def document(self) -> dict[str, Any]:
        return {"salt": self.salt, "digests": [list(pair) for pair in self.digests]}

    def apply(self, text: str) -> str:
        """`text` without any secret: every stretch of a secret's length is looked at."""
        for length, digest in self.digests:
            at = 0
            while at + length <= len(text):
                if _digest(self.salt, text[at : at + length]) == digest:
                    text = text[:at] + SHOWN + text[at + length :]
                    at += len(SHOWN)
                else:
                    at += 1
        return text


def _digest(salt: str, text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=bytes.fromhex(salt), digest_size=16).hexdigest()
