from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from legato.calibrate import profile
from legato.errors import RecordingError

GOOD = {"floor_us": {"p50": 1.0, "p99": 20.0}, "limit": {"events_per_s": 20_000.0}}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_profile_is_kept_for_plain_and_tls_apart() -> None:
    profile.save({"floor_us": {"p50": 1.0, "p99": 20.0}}, tls=False)
    profile.save({"floor_us": {"p50": 2.0, "p99": 30.0}}, tls=True)
    plain, tls = profile.load(tls=False), profile.load(tls=True)
    assert plain is not None
    assert tls is not None
    assert (plain["floor_us"]["p50"], tls["floor_us"]["p50"]) == (1.0, 2.0)


def test_there_is_no_profile_before_one_is_made() -> None:
    assert profile.load(tls=False) is None


def test_a_profile_of_another_machine_does_not_count() -> None:
    profile.save({"floor_us": {"p50": 1.0, "p99": 20.0}}, tls=False)
    document = json.loads(profile.path().read_text())
    document["machine"] = "another"
    profile.path().write_text(json.dumps(document))
    assert profile.load(tls=False) is None


def test_a_damaged_profile_does_not_count() -> None:
    profile.path().parent.mkdir(parents=True)
    profile.path().write_text("{")
    assert profile.load(tls=False) is None


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        None,
        "a",
        {},
        {"floor_us": [1.0, 20.0]},
        {"floor_us": {"p50": 1.0}},
        {"floor_us": {"p50": "1", "p99": 20.0}},
        {"floor_us": {"p50": 1.0, "p99": -1.0}},
        {"floor_us": {"p50": 1.0, "p99": 20.0}, "limit": 7},
        {"floor_us": {"p50": 1.0, "p99": 20.0}, "limit": {"events_per_s": None}},
    ],
    ids=repr,
)
def test_a_profile_of_another_shape_does_not_count(wrong: Any) -> None:
    profile.save(wrong, tls=False)
    assert profile.load(tls=False) is None


def test_a_cache_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(RecordingError, match=r"could not be kept in .*: Not a directory"):
        profile.save(GOOD, tls=False)


def test_a_user_without_a_home_has_no_profile_and_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)  # of no entry in the list of users
    assert profile.load(tls=False) is None
    with pytest.raises(RecordingError, match="set XDG_CACHE_HOME"):
        profile.save(GOOD, tls=False)
