"""A linear fit that long gaps cannot bend: Huber weights, instruments, clustered intervals.

The model is wait = X·β + rest. Each column of X has an instrument in Z: a column that moves with
it but cannot depend on how long the wait turned out to be. Where X is such itself, Z is X.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.explain.clusters import Clusters, half_width
from legato.metrics.gaps import Floats, Mask

# Weights fall where a wait is this many deviations off: near the mean's efficiency, and a stall
# of any length counts like one of three deviations.
HUBER_DEVIATIONS = 3.0
MAD_TO_DEVIATION = 1.4826
# A reference signal has hardly any noise; below this share of the usual wait a deviation is the
# model's roughness, not a stall.
LEAST_DEVIATION_SHARE = 0.01
MOST_ROUNDS = 50
SETTLED = 1e-9


@dataclass(frozen=True, slots=True)
class Fit:
    """β in ns per unit of each column, the rest of each wait, and how each wait pulls at β."""

    beta: Floats
    rest_ns: Floats
    pull: Floats  # [wait, column]: by how much β moves for each ns of this wait

    def half_width(self, weights: Floats, within: Clusters) -> float | None:
        """Half the 95 % interval of weights·β. What a figure rests on may be a few clusters of
        many (a load that changed once): its degrees of freedom are theirs."""
        pull = self.pull @ weights
        return half_width(pull * self.rest_ns, within, mass=pull**2)


def fit(wait_ns: Floats, x: Floats, z: Floats, counts: Mask) -> Fit:
    """Iteratively reweighted over the waits that count; the first round is unweighted, so that a
    rare cause with a column of its own is fitted rather than taken for outliers."""
    weight: Floats = counts.astype(np.float64)
    # Columns count tokens, streams and starts: brought to one size, their fit is well posed.
    x_size, z_size = (np.sqrt((side**2).sum(axis=0)) for side in (x, z))
    x, z = x / x_size, z / z_size
    beta: Floats = np.zeros(x.shape[1])
    for _ in range(MOST_ROUNDS):
        before = beta
        weighted = z * weight[:, None]
        beta = np.asarray(np.linalg.solve(weighted.T @ x, weighted.T @ wait_ns), np.float64)
        rest_ns = wait_ns - x @ beta
        weight = counts * _huber(rest_ns, wait_ns)
        if np.abs(beta - before).max() <= SETTLED * np.abs(beta).max():
            break
    weighted = z * weight[:, None]
    pull = weighted @ np.linalg.inv(weighted.T @ x).T
    return Fit(beta / x_size, rest_ns, pull / x_size)


def _huber(rest_ns: Floats, wait_ns: Floats) -> Floats:
    centre = np.median(rest_ns)
    deviation = MAD_TO_DEVIATION * np.median(np.abs(rest_ns - centre))
    deviation = max(float(deviation), LEAST_DEVIATION_SHARE * float(np.median(wait_ns)), 1.0)
    limit = HUBER_DEVIATIONS * deviation
    return np.asarray(limit / np.maximum(np.abs(rest_ns), limit), dtype=np.float64)


def independent(x: Floats, least_share: float = 1e-3) -> list[int]:
    """The columns, in order, that are not a combination of those before them: at least this share
    of a column's own variation is left when theirs is taken off. The first one is the constant."""
    kept: list[int] = []
    basis = np.empty((len(x), 0))
    for column in range(x.shape[1]):
        values = x[:, column]
        total = float(values @ values)
        if total == 0:
            continue
        left = values - basis @ (basis.T @ values)
        left -= basis @ (basis.T @ left)  # a second pass: the first leaves rounding behind
        own = total if not kept else float(((values - values.mean()) ** 2).sum())
        if kept and (own <= 1e-12 * total or float(left @ left) < least_share * own):
            continue
        kept.append(column)
        basis = np.column_stack([basis, left / np.sqrt(left @ left)])
    return kept
