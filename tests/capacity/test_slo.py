"""SLOs by expression, by profile, and from a file of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from legato.errors import UsageError
from legato.slo import PROFILES, resolve


@pytest.fixture(autouse=True)
def _no_profiles_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_an_expression(name: str) -> None:
    slo = resolve(name)
    assert slo.profile == name
    assert any(condition.metric == "error" for condition in slo.conditions)


def test_an_expression_stands_for_itself() -> None:
    slo = resolve("itl.p99<50ms,error<1%")
    assert slo.profile is None
    assert [condition.figure for condition in slo.conditions] == ["itl.p99", "error"]


def test_a_file_replaces_a_profile_and_adds_others(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('reader = "itl.p50<70ms"\n[radio]\nslo = "itl.p99<90ms"\nwhy = "on air"\n')
    assert resolve("reader", str(mine)).text == "itl.p50<70ms"
    assert resolve("radio", str(mine)).text == "itl.p99<90ms"
    assert resolve("coder", str(mine)).text == PROFILES["coder"]


def test_profiles_in_the_config_folder_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "legato"
    folder.mkdir(parents=True)
    (folder / "slo.toml").write_text('radio = "itl.p99<90ms"\n')
    assert resolve("radio").profile == "radio"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not toml = = ", "not TOML"),
        ("reader = 3", "must be a text"),
        ('reader = "speed<3ms"', "speed"),
    ],
)
def test_a_wrong_file_is_told_in_a_sentence_that_names_it(
    tmp_path: Path, text: str, said: str
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        resolve("reader", str(mine))
    assert str(mine) in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        resolve("reader", str(tmp_path / "none.toml"))


def test_an_unknown_profile_lists_those_there_are() -> None:
    with pytest.raises(UsageError, match="reader, coder, agent, speech, batch"):
        resolve("listener")
