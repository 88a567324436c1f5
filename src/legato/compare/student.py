"""Student's t, exact at any number of degrees of freedom: a comparison of two runs a side has
one or two, where approximations fail."""

from __future__ import annotations

import math

_Z_975 = 1.959963984540054
_STEPS = 300
_PRECISION = 1e-14


def two_sided_p(t: float, df: float = math.inf) -> float:
    """The chance of a value at least this far from 0."""
    if math.isinf(df):
        return math.erfc(abs(t) / math.sqrt(2))
    if math.isinf(t):
        return 0.0
    return _incomplete_beta(df / 2, 0.5, df / (df + t * t))


def point_975(df: float) -> float:
    """The 97.5 % point: half of a 95 % interval, in standard errors."""
    if math.isinf(df):
        return _Z_975
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_p(middle, df) > 0.05 else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function (continued fraction, Lentz's method)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    # The fraction converges quickly below the mean; above it the mirror image does.
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return math.exp(log_front) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    f, c, d = 1.0, 1.0, 0.0
    for step in range(1, _STEPS):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _away_from_zero(1 + term * d)
        c = _away_from_zero(1 + term / c)
        f *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return f


def _away_from_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300
