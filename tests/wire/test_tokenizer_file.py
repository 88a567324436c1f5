"""A tokenizer that cannot be had is told with what would help."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from legato.errors import UsageError
from legato.wire.tokens import load_tokenizer


@pytest.fixture
def _without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)


@pytest.mark.usefixtures("_without_the_library")
def test_the_missing_library_is_to_be_installed_where_legato_runs(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError) as caught:
        load_tokenizer(str(tmp_path))
    assert str(caught.value).endswith(f"{sys.executable} -m pip install tokenizers")


@pytest.mark.usefixtures("_without_the_library")
def test_a_missing_file_is_told_before_a_missing_library(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no tokenizer at"):
        load_tokenizer(str(tmp_path / "nosuch"))
