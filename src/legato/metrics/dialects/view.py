"""What a tool sees of a recording: the streams it counts, and the chunks it looks at.

Everything is in integer nanoseconds from the stream's first byte written. It knows no tool.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from legato.recording import (
    CONTENT,
    DONE,
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    HAS_USAGE,
    KINDS,
    REASONING,
    ROLE,
    TOOL,
    USAGE,
    Ints,
    Recording,
)

Bools = npt.NDArray[np.bool_]

MISSING = -1

# A chunk of these kinds had a choice, whether or not its flag was kept.
_KIND_WITH_CHOICES: Bools = np.zeros(len(KINDS), np.bool_)
_KIND_WITH_CHOICES[[ROLE, CONTENT, REASONING, TOOL, FINISH]] = True


@dataclass(frozen=True)
class Picked:
    """The chunks of a view that a tool looks at; `index` is their place among all of them."""

    view: View
    index: Ints

    @cached_property
    def stream(self) -> Ints:
        return self.view.stream[self.index]

    @cached_property
    def at_ns(self) -> Ints:
        return self.view.at_ns[self.index]

    @cached_property
    def held(self) -> Ints:
        """Per chunk, its tokens: its own text encoded again if that is known, else as recorded."""
        counts = self.view.tokens if self.view.retokens is None else self.view.retokens
        return counts[self.index]

    @cached_property
    def tokens(self) -> Ints:
        """Per stream, the tokens its picked chunks hold."""
        return np.bincount(self.stream, self.held, len(self.view)).astype(np.int64)

    @cached_property
    def _starts(self) -> Ints:
        return np.flatnonzero(np.diff(self.stream, prepend=MISSING))

    @cached_property
    def count(self) -> Ints:
        """Per stream, how many chunks were picked."""
        return np.bincount(self.stream, minlength=len(self.view))

    @cached_property
    def first_ns(self) -> Ints:
        """Per stream, when its first picked chunk came; `MISSING` where there is none."""
        return self._per_stream(self.at_ns, self._starts)

    @cached_property
    def last_ns(self) -> Ints:
        return self._per_stream(self.at_ns, np.append(self._starts[1:], len(self.at_ns)) - 1)

    @cached_property
    def last_index(self) -> Ints:
        return self._per_stream(self.index, np.append(self._starts[1:], len(self.at_ns)) - 1)

    @cached_property
    def gaps_ns(self) -> Ints:
        """The times from each picked chunk to the next of its stream, of all streams."""
        return np.delete(np.diff(self.at_ns), self._starts[1:] - 1)

    @cached_property
    def sorted_gaps_ns(self) -> Ints:
        return np.sort(self.gaps_ns)

    def _per_stream(self, values: Ints, positions: Ints) -> Ints:
        found = np.full(len(self.view), MISSING, np.int64)
        if len(self.at_ns):
            found[self.stream[positions]] = values[positions]
        return found


@dataclass(frozen=True)
class View:
    """Some streams of a recording and all their chunks; `rows` are their rows in it."""

    recording: Recording
    rows: Ints

    def __len__(self) -> int:
        return len(self.rows)

    # --- per stream -------------------------------------------------------------------------

    @cached_property
    def sent_ns(self) -> Ints:
        return self._scalar("sent_ns")

    @cached_property
    def scheduled_ns(self) -> Ints:
        return self._scalar("scheduled_ns")

    @cached_property
    def ended_ns(self) -> Ints:
        """Per stream, when the response ended, from its send."""
        return self._scalar("ended_ns") - self.sent_ns

    @cached_property
    def usage_tokens(self) -> Ints:
        """The server's own count of the answer's tokens, or `MISSING`."""
        return self._scalar("output_tokens")

    @cached_property
    def text_tokens(self) -> Ints:
        """The whole text encoded again by a tokenizer, or `MISSING`."""
        return self._scalar("text_tokens")

    @cached_property
    def is_completions(self) -> Bools:
        return np.asarray(self.recording.strings("api")[self.rows] == "completions", np.bool_)

    @property
    def requested_tokens(self) -> int:
        settings = self.recording.meta.get("settings") or {}
        return settings.get("output_tokens") or MISSING

    def _scalar(self, name: str) -> Ints:
        return self.recording.ints(name, MISSING)[self.rows]

    # --- per chunk --------------------------------------------------------------------------

    @cached_property
    def _here(self) -> Bools | None:
        """Which of the recording's chunks belong to these streams; None is all."""
        if len(self.rows) == len(self.recording):
            return None
        mask = np.zeros(len(self.recording), np.bool_)
        mask[self.rows] = True
        return mask[self.recording.stream_of_chunk]

    def _of_chunks(self, values: Ints) -> Ints:
        return values if self._here is None else values[self._here]

    @cached_property
    def stream(self) -> Ints:
        number = np.full(len(self.recording), MISSING, np.int64)
        number[self.rows] = np.arange(len(self.rows))
        return number[self._of_chunks(self.recording.stream_of_chunk)]

    @cached_property
    def at_ns(self) -> Ints:
        return self._of_chunks(self.recording.arrival_ns)

    @cached_property
    def tokens(self) -> Ints:
        return self._of_chunks(self.recording.tokens)

    @cached_property
    def kind(self) -> Ints:
        return self._of_chunks(self.recording.kind)

    @cached_property
    def flags(self) -> Ints:
        return self._of_chunks(self.recording.flags)

    @cached_property
    def retokens(self) -> Ints | None:
        """Per chunk, its own text encoded again; None unless every stream with chunks has it."""
        column = self.recording.table.column("retokens").combine_chunks()
        if self._here is not None:
            column = column.take(pa.array(self.rows))
        flat = np.asarray(column.flatten().cast(pa.int64()), np.int64)
        return flat if len(flat) == len(self.at_ns) else None

    @cached_property
    def has_choices(self) -> Bools:
        return _KIND_WITH_CHOICES[self.kind] | self._flagged(HAS_CHOICES)

    @cached_property
    def has_usage(self) -> Bools:
        return np.asarray(self.kind == USAGE) | self._flagged(HAS_USAGE)

    @cached_property
    def has_finish(self) -> Bools:
        return np.asarray(self.kind == FINISH) | self._flagged(HAS_FINISH)

    @cached_property
    def has_riding_usage(self) -> Bools:
        """Chunks whose choice brings the usage along, in streams without a usage chunk.

        Where there is one too, the running usage is there because we asked for it; tools do not.
        """
        alone = np.asarray(self.usage_only.count == 0, np.bool_)
        return self.has_usage & self.has_choices & alone[self.stream]

    def _flagged(self, flag: int) -> Bools:
        return np.asarray((self.flags & flag) != 0, np.bool_)

    # --- the chunks that tools pick ---------------------------------------------------------

    @cached_property
    def content(self) -> Picked:
        """Chunks with text of the answer."""
        return self._holding(CONTENT)

    @cached_property
    def text(self) -> Picked:
        """Chunks with text of the answer or of the reasoning."""
        wider = self._holding(CONTENT, REASONING)
        return self.content if len(wider.index) == len(self.content.index) else wider

    @cached_property
    def output(self) -> Picked:
        """Chunks with text, reasoning or a tool call."""
        wider = self._holding(CONTENT, REASONING, TOOL)
        return self.text if len(wider.index) == len(self.text.index) else wider

    @cached_property
    def choices(self) -> Picked:
        """Chunks with a choice: role-only, empty and finish ones too."""
        return self.pick(self.has_choices)

    @cached_property
    def usage_only(self) -> Picked:
        return self.pick(self.has_usage & ~self.has_choices)

    @cached_property
    def done(self) -> Picked:
        return self.pick(self.kind == DONE)

    @cached_property
    def objects(self) -> Picked:
        """Every chunk that is JSON: all but [DONE]."""
        return self.pick(self.kind != DONE)

    @cached_property
    def lines(self) -> Picked:
        """Every chunk."""
        return self.pick(np.ones(len(self.at_ns), np.bool_))

    def pick(self, mask: Bools) -> Picked:
        return Picked(self, np.flatnonzero(mask))

    def _holding(self, *kinds: int) -> Picked:
        mask = self.kind == kinds[0]
        for kind in kinds[1:]:
            mask |= self.kind == kind
        return self.pick(mask & ~self._flagged(EMPTY))


@dataclass(frozen=True)
class Run:
    """A recording as tools count it: the streams answered whole, and all that were sent.

    Streams of the warm-up are in neither.
    """

    ok: View
    sent: View

    @cached_property
    def wall_ns(self) -> int:
        """From the first send to the last end, failed streams included."""
        return span_ns(self.sent, self.sent.ended_ns)


def run_of(recording: Recording) -> Run:
    sent = recording.ints("sent_ns", MISSING) != MISSING
    sent &= np.asarray(recording.strings("phase") != "warmup", np.bool_)
    ok = sent & np.asarray(recording.strings("status") == "ok", np.bool_)
    everything = View(recording, np.flatnonzero(sent))
    if bool(np.all(ok == sent)):
        return Run(everything, everything)
    return Run(View(recording, np.flatnonzero(ok)), everything)


def span_ns(view: View, end_ns: Ints) -> int:
    """From the first send to the latest of the given ends, which count from each send."""
    if not len(view):
        return 0
    return int((view.sent_ns + end_ns).max() - view.sent_ns.min())
