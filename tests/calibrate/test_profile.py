from __future__ import annotations

import json
from pathlib import Path

import pytest

from legato.calibrate import profile


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
