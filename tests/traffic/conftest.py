"""One metronome for all tests that only need a target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legato.metronome.launch import running
from legato.metronome.pattern import Pattern


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    """The URL of a metronome: 20 tokens, 5 ms apart."""
    with running(Pattern(gap_ms=5, tokens=20)) as metronome:
        yield metronome.url
