"""What is asked: prompts of about a wanted number of tokens, or the lines of a file, and the salt
that keeps a prefix cache from flattering the figures."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from legato.errors import UsageError

# Common English words: one token each, or nearly, in the vocabularies in use.
_TEXT = """
time year people way day man thing woman life child world school state family
student group country problem hand part place case week company system program question work
government number night point home water room mother area money story fact month lot
right study book eye job word business issue side kind head house service friend
father power hour game line end member law car city community name president team
minute idea body information back parent face others level office door health person art
war history party result change morning reason research girl guy moment air teacher force
education
"""
_WORDS = _TEXT.split()
_SYNTHETIC_PROMPTS = 32


def synthetic(prompt_tokens: int, seed: int) -> list[str]:
    """A few prompts of about `prompt_tokens` tokens each: a word counts as a token."""
    generator = random.Random(seed)
    return [" ".join(generator.choices(_WORDS, k=prompt_tokens)) for _ in range(_SYNTHETIC_PROMPTS)]


def from_file(path: str) -> list[str]:
    """A prompt a line; empty lines are skipped."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read the prompt file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"the prompt file {path} is not UTF-8 at byte {error.start}") from None
    prompts = [line.strip() for line in text.splitlines() if line.strip()]
    if not prompts:
        raise UsageError(f"the prompt file {path} holds no prompt")
    return prompts


def salt(seed: int, worker: int, number: int) -> str:
    """A few characters that no other request of this or another run starts with."""
    return hashlib.blake2b(f"{seed}/{worker}/{number}".encode(), digest_size=6).hexdigest()
