"""Stretches of time whose streams can count as independent looks at a run.

A stall is in the figure of every stream that was open, so streams sent within one stream's length
of each other share it. Blocks of time for figures of whole streams are therefore cut into
stretches a few streams long.
"""

from __future__ import annotations

import numpy as np

from legato.recording import Ints

# In lengths of the median stream: the longer the safer, while enough stretches are left.
SHORTEST, LONGEST = 2.0, 4.0
WANTED = 12


def windows_ns(sent_ns: Ints, open_ns: Ints) -> Ints:
    """For each stream the start of the stretch it was sent in; `open_ns` is how long those took
    that gave the figure in question."""
    sent = sent_ns[sent_ns >= 0]
    if not len(sent) or not len(open_ns):
        return sent_ns
    first_ns = int(sent.min())
    median_ns = max(1.0, float(np.median(open_ns)))
    lengths = (int(sent.max()) - first_ns) / median_ns
    length_ns = max(1, round(median_ns * min(LONGEST, max(SHORTEST, lengths / WANTED))))
    return np.asarray((sent_ns - first_ns) // length_ns * length_ns + first_ns, dtype=np.int64)
