"""How long prompts and answers are: a fixed number of tokens, a distribution, or a file of them.

    256   uniform:100:500   normal:256:64   lognormal:256:128   file:lengths.txt

`normal` and `lognormal` take mean and standard deviation. Draws are whole numbers, at least 1.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path

from legato.errors import UsageError

MAX_TOKENS = 10_000_000
_TAKES = {"uniform": 2, "normal": 2, "lognormal": 2}


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of lengths in tokens."""

    kind: str  # fixed, uniform, normal, lognormal or file
    numbers: tuple[float, ...]
    text: str = ""  # as the user wrote it

    def draw(self, count: int, seed: str) -> list[int]:
        """`count` lengths; the same seed gives the same ones."""
        if self.kind == "fixed":
            return [int(self.numbers[0])] * count
        if self.kind == "file":
            return [int(self.numbers[i % len(self.numbers)]) for i in range(count)]
        generator = random.Random(seed)
        return [min(MAX_TOKENS, max(1, round(self._one(generator)))) for _ in range(count)]

    def _one(self, generator: random.Random) -> float:
        a, b = self.numbers
        if self.kind == "uniform":
            return generator.randint(int(a), int(b))
        if self.kind == "normal":
            return generator.gauss(a, b)
        sigma = math.sqrt(math.log1p((b / a) ** 2))
        return generator.lognormvariate(math.log(a) - sigma**2 / 2, sigma)

    @property
    def fixed(self) -> int | None:
        """The one length, where there is only one."""
        return int(self.numbers[0]) if self.kind == "fixed" else None


def parse(option: str, text: str) -> Lengths:
    """The distribution a user wrote after `option`."""
    kind, colon, rest = text.partition(":")
    if not colon:
        return Lengths("fixed", (_whole(option, text, text),), text)
    if kind == "file":
        return Lengths("file", tuple(_from_file(option, rest)), text)
    parts = rest.split(":")
    if kind not in _TAKES or len(parts) != _TAKES[kind]:
        raise UsageError(
            f"{option} {text!r} is none of N, uniform:LOW:HIGH, normal:MEAN:STD,"
            " lognormal:MEAN:STD and file:PATH"
        )
    numbers = tuple(_number(option, part, text) for part in parts)
    if kind == "uniform" and not 1 <= numbers[0] <= numbers[1] <= MAX_TOKENS:
        raise UsageError(f"{option} {text!r}: LOW must be at least 1 and at most HIGH")
    if kind != "uniform" and not (1 <= numbers[0] <= MAX_TOKENS and numbers[1] >= 0):
        raise UsageError(f"{option} {text!r}: MEAN must be at least 1 and STD at least 0")
    return Lengths(kind, numbers, text)


def fixed(tokens: int) -> Lengths:
    """All of one length."""
    return Lengths("fixed", (tokens,), str(tokens))


def _from_file(option: str, path: str) -> list[float]:
    try:
        lines = Path(path).read_text(encoding="utf-8").split()
    except OSError as error:
        raise UsageError(f"{option}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{option}: {path} is not a text of numbers") from None
    if not lines:
        raise UsageError(f"{option}: {path} holds no number")
    return [_whole(option, line, f"file:{path}") for line in lines]


def _whole(option: str, text: str, shown: str) -> int:
    number = _number(option, text, shown)
    if number != int(number) or not 1 <= number <= MAX_TOKENS:
        raise UsageError(f"{option} {shown} must be a whole number from 1 to {MAX_TOKENS}")
    return int(number)


def _number(option: str, text: str, shown: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{option} {shown!r}: {text!r} is not a number")
    return number
