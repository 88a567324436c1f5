"""A command that legato prints can be pasted: it starts as legato was started."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = "from legato import invocation; print(invocation.as_typed('legato bench'))"


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A folder with an executable `my tools/legato` that says what it would print."""
    script = tmp_path / "my tools" / "legato"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\n{PROGRAM}\n")
    script.chmod(0o755)
    return tmp_path


def said(command: list[str], cwd: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "LEGATO_INVOKED_AS"}
    done = subprocess.run(
        command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.removesuffix("\n")


def test_a_path_is_kept_as_it_was_typed_and_quoted(places: Path) -> None:
    assert said(["./my tools/legato"], places, PATH="/bin:/usr/bin") == "'./my tools/legato' bench"


def test_what_the_search_path_finds_is_named_alone(places: Path) -> None:
    script = places / "my tools" / "legato"
    path = f"{script.parent}:/bin:/usr/bin"
    assert said([str(script)], places, PATH=path) == "legato bench"


def test_another_legato_on_the_search_path_is_not_taken_for_this_one(places: Path) -> None:
    other = places / "other"
    shutil.copytree(places / "my tools", other)
    script = places / "my tools" / "legato"
    path = f"{other}:/bin:/usr/bin"
    assert said([str(script)], places, PATH=path) == f"{shlex.quote(str(script))} bench"


def test_the_name_that_a_wrapper_passes_on_comes_first(places: Path) -> None:
    name = "main/scripts/legato"
    assert said(["./my tools/legato"], places, LEGATO_INVOKED_AS=name) == f"{name} bench"


def test_a_program_that_uses_the_library_is_not_taken_for_the_command(tmp_path: Path) -> None:
    assert said([sys.executable, "-c", PROGRAM], tmp_path) == "legato bench"


def test_the_module_started_by_an_interpreter_names_the_interpreter(tmp_path: Path) -> None:
    program = f"import sys; sys.argv = ['/a/legato/cli.py']; {PROGRAM}"
    expected = f"{shlex.quote(sys.executable)} -m legato.cli bench"
    assert said([sys.executable, "-c", program], tmp_path) == expected


def test_the_script_of_the_checkout_passes_its_own_name_on(tmp_path: Path) -> None:
    checkout = tmp_path / "main"
    installed = checkout / ".venv-run" / "bin" / "legato"
    installed.parent.mkdir(parents=True)
    installed.write_text(f"#!{sys.executable}\n{PROGRAM}\n")
    installed.chmod(0o755)
    (checkout / "pyproject.toml").touch()
    (checkout / ".venv-run" / ".installed").touch()
    shutil.copytree(ROOT / "scripts", checkout / "scripts")
    assert said(["main/scripts/legato"], tmp_path) == "main/scripts/legato bench"
