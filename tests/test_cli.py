"""The command line itself: quick help, wrong usage in one sentence, and what `report` refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from legato.cli import COMMANDS

HEAVY = ("numpy", "pyarrow", "rich")
LEGATO = [sys.executable, "-m", "legato.cli"]


def legato(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LEGATO, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def assert_refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("legato: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], [], ["--version"]], ids=" ".join)
def test_help_and_version_load_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *LEGATO[1:], *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(("usage: legato", "legato "))
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.split("\n")}
    assert "legato" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_help_names_every_command_and_the_exit_codes() -> None:
    shown = legato("--help").stdout
    first_words = [line.split()[0] for line in shown.splitlines() if line.strip()]
    assert set(COMMANDS) <= set(first_words)
    assert "exit codes" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    done = legato(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: legato {name}" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["--nosuch"],
        ["bench", "--nosuch"],
        ["bench", "--concurr", "3"],
        ["bench", "http://localhost:1", "http://localhost:2"],
        ["report"],
        ["report", "--nosuch", "a.parquet"],
        ["metronome", "--nosuch"],
    ],
    ids=" ".join,
)
def test_an_unknown_command_or_option_is_refused_in_one_sentence(arguments: list[str]) -> None:
    done = legato(*arguments)
    assert_refused(done)
    assert "--help" in done.stderr


def test_report_of_a_missing_file_says_so() -> None:
    done = legato("report", "nosuch.parquet")
    assert_refused(done)
    assert "nosuch.parquet" in done.stderr


def test_report_of_a_text_file_says_that_it_is_no_recording(tmp_path: Path) -> None:
    file = tmp_path / "notes.parquet"
    file.write_text("these are notes\n" * 100)
    done = legato("report", str(file))
    assert_refused(done)
    assert f"{file} is not a readable recording" in done.stderr


def test_report_of_a_foreign_parquet_file_says_that_it_is_no_recording(tmp_path: Path) -> None:
    file = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"itl": [1.0, 2.0]}), file)
    done = legato("report", str(file))
    assert_refused(done)
    assert "not a recording of legato" in done.stderr


def test_report_of_an_empty_folder_says_so(tmp_path: Path) -> None:
    done = legato("report", str(tmp_path))
    assert_refused(done)
    assert str(tmp_path) in done.stderr


def test_report_of_a_partial_folder_whose_plan_is_torn_says_so(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"meta": {')
    done = legato("report", str(tmp_path))
    assert_refused(done)
    assert "plan.json" in done.stderr
