"""How many tokens an answer had, by each way a tool counts, and whether the recording knows.

A count is approximate where the tool encodes the text again and the recording was made
without a tokenizer; the tokens of the recording's own chunks then stand in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.metrics.dialects.view import MISSING, Picked, View
from legato.recording import Ints

NO_TOKENIZER = "no tokenizer: tokens as recorded, not re-encoded"
PIECEWISE = "text of several kinds or split tokens: counted chunk by chunk"


@dataclass(frozen=True, slots=True)
class Tally:
    """Tokens a stream; `why` says in a few words what makes them approximate."""

    tokens: Ints
    why: str | None = None


def usage_or(view: View, otherwise: Tally) -> Tally:
    """The server's count; another tally for the streams it gave none for."""
    return first_known(view.usage_tokens, otherwise)


def requested_or(view: View, otherwise: Tally) -> Tally:
    """The length that was asked for, whatever came back; another tally where none was."""
    return first_known(np.full(len(view), view.requested_tokens), otherwise)


def first_known(known: Ints, otherwise: Tally) -> Tally:
    """`known` where it is positive, as tools test it; the other tally elsewhere."""
    if bool(np.all(known > 0)):
        return Tally(known)
    return Tally(np.where(known > 0, known, otherwise.tokens), otherwise.why)


def recorded(view: View, why: str) -> Tally:
    """The tokens of the recording's own chunks, for want of what the tool would count."""
    total = np.bincount(view.stream, weights=view.tokens, minlength=len(view))
    return Tally(total.astype(np.int64), why)


def encoded_whole(picked: Picked) -> Tally:
    """The text of the picked chunks encoded again as one string."""
    view = picked.view
    is_all = len(picked.index) == len(view.output.index)
    if is_all and bool(np.all(view.text_tokens != MISSING)):
        return Tally(view.text_tokens)
    return encoded_pieces(picked) if view.retokens is None else Tally(picked.tokens, PIECEWISE)


def encoded_pieces(picked: Picked) -> Tally:
    """The text of each picked chunk encoded again by itself, summed."""
    return Tally(picked.tokens, why_not_encoded(picked.view))


def why_not_encoded(view: View) -> str | None:
    return NO_TOKENIZER if view.retokens is None else None


def is_additive(view: View) -> bool:
    """Whether encoding the pieces gave as many tokens as encoding the whole, in each stream."""
    if view.retokens is None:
        return False
    pieces = np.bincount(view.stream, weights=view.retokens, minlength=len(view))
    return bool(np.all(pieces == np.maximum(view.text_tokens, 0)))
