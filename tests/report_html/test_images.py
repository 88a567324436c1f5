"""Charts as files, drawn without a browser."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from page_recordings import uneven

from legato.cli import main

NAMES = [
    "gaps-over-time",
    "itl-concurrency",
    "itl-context",
    "itl-distribution",
    "itl-position",
    "piano-roll",
]
needs_converter = pytest.mark.skipif(
    importlib.util.find_spec("vl_convert") is None, reason="vl-convert-python is not installed"
)


def exported(folder: Path, *options: str) -> list[Path]:
    run = folder / "run.parquet"
    uneven().write(run)
    main(["report", str(run), "--json", "--charts", str(folder / "charts"), *options])
    return sorted((folder / "charts").iterdir())


@needs_converter
def test_each_chart_becomes_an_svg_file(tmp_path: Path) -> None:
    files = exported(tmp_path)
    assert [file.name for file in files] == [f"{name}.svg" for name in NAMES]
    for file in files:
        root = ElementTree.parse(file).getroot()
        assert root.tag.endswith("svg")
        assert len(list(root.iter())) > 30


@needs_converter
def test_each_chart_becomes_a_png_file(tmp_path: Path) -> None:
    files = exported(tmp_path, "--chart-format", "png")
    assert [file.name for file in files] == [f"{name}.png" for name in NAMES]
    for file in files:
        assert file.read_bytes().startswith(b"\x89PNG\r\n")


def test_without_the_converter_one_sentence_names_the_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    run = tmp_path / "run.parquet"
    uneven(streams=3).write(run)
    assert main(["report", str(run), "--charts", str(tmp_path / "charts")]) == 2
    said = capsys.readouterr().err
    assert "legato[charts]" in said
    assert said.count("\n") == 1
