"""From the kernel's wall-clock stamps to monotonic time, and where they cannot be trusted."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from legato.stamps import Anchor

# Two anchors tell a step apart from their own reading error by at least this much.
STEP_NS = 5_000


class Clock:
    """The anchors of one worker. Anchors that agree form an epoch with one offset, the
    tightest anchor's, so that the anchors' own error cancels in every gap inside it."""

    def __init__(self) -> None:
        self._at_ns: list[int] = []
        self._epoch: list[int] = []
        self._tightest: list[Anchor] = []

    def add(self, anchor: Anchor) -> None:
        if not self._tightest or _differ(self._tightest[-1], anchor):
            self._tightest.append(anchor)
        elif anchor.width_ns < self._tightest[-1].width_ns:
            self._tightest[-1] = anchor
        elif anchor.width_ns > STEP_NS:
            return  # too wide to tell that nothing was stepped since the one before
        self._at_ns.append(anchor.at_ns)
        self._epoch.append(len(self._tightest) - 1)

    @property
    def steps(self) -> int:
        return max(0, len(self._tightest) - 1)

    @property
    def width_ns(self) -> int:
        """How well the wall clock is tied to the monotonic one, at worst."""
        return max((anchor.width_ns for anchor in self._tightest), default=0)

    def monotonic(
        self, stamp_ns: npt.NDArray[np.int64], read_ns: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """(monotonic time of each stamp, which of them hold). A stamp does not hold where there
        is none, where the anchors around its read disagree, or where it lies after the read."""
        if not self._tightest:
            return read_ns.copy(), np.zeros(len(read_ns), bool)
        if len(self._tightest) == 1:
            offset_ns: int | npt.NDArray[np.int64] = self._tightest[0].offset_ns
            steady = np.ones(len(read_ns), bool)
        else:
            before = np.asarray([bisect_right(self._at_ns, at) - 1 for at in read_ns.tolist()])
            epochs = np.asarray(self._epoch)
            first = epochs[np.maximum(before, 0)]
            steady = first == epochs[np.minimum(before + 1, len(epochs) - 1)]
            offset_ns = np.asarray([a.offset_ns for a in self._tightest], np.int64)[first]
        arrived_ns = stamp_ns - offset_ns
        holds = (stamp_ns > 0) & steady & (arrived_ns <= read_ns + STEP_NS)
        return np.where(holds, arrived_ns, read_ns), holds


def _differ(a: Anchor, b: Anchor) -> bool:
    return abs(a.offset_ns - b.offset_ns) > a.width_ns + b.width_ns + STEP_NS
