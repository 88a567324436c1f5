"""The load that is made of what was asked, where little was."""

from __future__ import annotations

import pytest

from legato.errors import UsageError
from legato.traffic.plan import DEFAULT_CONCURRENCY, check_load


@pytest.mark.parametrize(
    ("requests", "warmup", "concurrency"),
    [(None, 0, DEFAULT_CONCURRENCY), (1, 0, 1), (3, 0, 3), (3, 2, 5), (500, 0, 10)],
)
def test_no_more_streams_than_requests_where_no_number_of_streams_was_given(
    requests: int | None, warmup: int, concurrency: int
) -> None:
    load = check_load(concurrency=None, requests=requests, warmup=warmup)
    assert load.concurrency == concurrency


def test_as_many_streams_as_workers_where_only_workers_were_given() -> None:
    load = check_load(concurrency=None, workers=16)
    assert (load.concurrency, load.workers) == (16, 16)


def test_streams_that_were_asked_for_are_not_made_fewer() -> None:
    with pytest.raises(UsageError, match="--concurrency 10 can never be reached with 3 requests"):
        check_load(concurrency=10, requests=3)
