"""How the user started legato, so that a command we print can be pasted as it stands."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

VARIABLE = "LEGATO_INVOKED_AS"  # set by scripts/legato, whose own name the interpreter never sees


def name() -> str:
    """The first words of a command line that starts this legato again, quoted for a shell."""
    given = os.environ.get(VARIABLE) or sys.argv[0]
    program = Path(given)
    if program.name == "cli.py":
        return f"{shlex.quote(sys.executable)} -m legato.cli"
    found = shutil.which("legato")
    if program.name != "legato" or (found is not None and _same(Path(found), program)):
        return "legato"
    return shlex.quote(given)


def as_typed(command: str) -> str:
    """`legato …` as the user would type it here."""
    return name() + command.removeprefix("legato")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
