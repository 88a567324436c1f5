"""The words of synthetic prompts: common ones, which are one token each in most vocabularies, and
exactly one each where a tokenizer says so."""

from __future__ import annotations

from legato.wire.tokens import Tokenizer

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
_FEWEST_WORDS = 20


def vocabulary(tokenizer: Tokenizer | None) -> tuple[tuple[str, ...], bool]:
    """(words, whether each is exactly one token wherever it stands). Without a tokenizer a
    prompt of n words has about n tokens."""
    if tokenizer is None:
        return tuple(_WORDS), False

    def tokens(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    # Alone, after another word and twice in a row: what adds up in these adds up in a prompt.
    words = tuple(w for w in _WORDS if tokens(w) == 1 and tokens(f"{w} {w} {w}") == 3)
    if len(words) < _FEWEST_WORDS:
        return tuple(_WORDS), False
    return words, tokens(" ".join(words)) == len(words)
