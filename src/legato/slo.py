"""Service-level objectives: an expression, or a profile named after who consumes the text.

Profiles are starting points with their reasons (docs/slo-profiles.md), never built-in truths: a
file of the user's replaces or adds to them.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from legato.errors import UsageError
from legato.expressions import Condition, parse

PROFILES = {
    "reader": "ttft.p90<1s, itl.p50<100ms, itl.p99<300ms, fluidity>0.95, error<1%",
    "coder": "ttft.p90<500ms, itl.p50<30ms, itl.p99<150ms, error<1%",
    "agent": "ttft.p90<1s, tpot.p90<20ms, error<0.5%",
    "speech": "ttft.p90<400ms, itl.p99<200ms, stall_ratio<1%, fluidity>0.98, error<1%",
    "batch": "ttft.p90<60s, tpot.p90<250ms, error<0.5%",
}


@dataclass(frozen=True, slots=True)
class Slo:
    """What must hold: `text` as it was written, and `profile` where it came from one."""

    text: str
    conditions: tuple[Condition, ...]
    profile: str | None = None

    def __str__(self) -> str:
        return self.text if self.profile is None else f"{self.profile} ({self.text})"


def add_options(group: argparse._ActionsContainer, purpose: str) -> None:
    """`--slo` and where it may come from, for every command that takes one."""
    group.add_argument("--slo", metavar="EXPR|PROFILE", help=purpose)
    group.add_argument(
        "--profile-file", metavar="FILE.toml", help="SLO profiles of your own (slo-profiles.md)"
    )


def resolve(wanted: str, profile_file: str | None = None) -> Slo:
    """`wanted` is a profile's name or an expression."""
    profiles = {**PROFILES, **_user_profiles(profile_file)}
    name = wanted.strip()
    if name in profiles:
        return Slo(profiles[name], tuple(parse(profiles[name], relative=False)), name)
    if name.isidentifier():
        raise UsageError(
            f"--slo {name} is neither a profile ({', '.join(profiles)}) nor a condition such as"
            " itl.p99<50ms"
        )
    return Slo(name, tuple(parse(wanted, relative=False)))


def user_file() -> Path:
    """Where a user's own profiles are looked for."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "legato" / "slo.toml"


def _user_profiles(named: str | None) -> dict[str, str]:
    path = Path(named) if named is not None else user_file()
    if named is None and not path.is_file():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the SLO profiles {path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"the SLO profiles {path} are not TOML: {error}") from None
    return {name: _profile(name, entry, path) for name, entry in document.items()}


def _profile(name: str, entry: object, path: Path) -> str:
    text = entry.get("slo") if isinstance(entry, dict) else entry
    if not isinstance(text, str):
        raise UsageError(
            f'the SLO profile {name!r} in {path} must be a text such as "itl.p99<50ms"'
        )
    try:
        parse(text, relative=False)
    except UsageError as error:
        raise UsageError(f"the SLO profile {name!r} in {path}: {error}") from None
    return text
