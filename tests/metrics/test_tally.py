"""How streams are counted by the way they ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from made_streams import recording, stream

from legato.endings import LEFT_OPEN
from legato.metrics import tally
from legato.recording import CONTENT, DONE, Recording, Stream


def counted(made: Recording) -> dict[str, int]:
    return tally.streams(made, np.ones(len(made), dtype=bool))


def ended(last: int, **fields: Any) -> Stream:
    return stream([50, 60, 70], kind=[CONTENT, CONTENT, last], tokens=[1, 1, 0], **fields)


@pytest.mark.parametrize("error", LEFT_OPEN)
def test_a_stream_that_the_client_left_open_is_aborted_but_no_failure(error: str) -> None:
    made = recording(
        stream([50, 60]),
        stream([50], status="aborted", error=error),
        stream([50], status="aborted", error="connection reset by peer"),
    )
    found = counted(made)
    assert (found["aborted"], found["left_open"]) == (2, 1)
    (failure,) = tally.failures(made, np.ones(3, dtype=bool))
    assert (failure["count"], failure["error"]) == (1, "connection reset by peer")


def test_whole_answers_without_their_end_mark_are_counted() -> None:
    made = recording(ended(CONTENT), ended(DONE), ended(CONTENT, status="timeout"))
    assert counted(made)["without_done"] == 1


def test_an_api_that_has_no_done_mark_misses_none() -> None:
    assert counted(recording(ended(CONTENT, api="ollama")))["without_done"] == 0


def test_the_file_of_another_tool_does_not_tell_of_end_marks() -> None:
    assert counted(recording(ended(CONTENT), imported={"from": "vllm"}))["without_done"] == 0
