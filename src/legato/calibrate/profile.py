"""The kept result of a calibration: what `bench` takes its calibrated floor from."""

from __future__ import annotations

import json
import math
import os
import platform
from pathlib import Path
from typing import Any

from legato.errors import RecordingError

LABEL = "loopback, excluding NIC coalescing"


def path() -> Path:
    """In the user's cache folder: a profile is this machine's and can be made again."""
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(cache) if cache else Path.home() / ".cache"
    except RuntimeError:  # no HOME, and a user of no name
        raise RecordingError(
            "there is no home folder to keep a calibration in: set XDG_CACHE_HOME"
        ) from None
    return folder / "legato" / "calibration.json"


def load(tls: bool) -> dict[str, Any] | None:
    """This machine's profile for plain or TLS connections; None where it was never made here."""
    try:
        document = json.loads(path().read_text(encoding="utf-8"))
        if document["machine"] != _machine():
            return None
        profile: dict[str, Any] = document["tls" if tls else "plain"]
        return profile if _is_sound(profile) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, RecordingError):
        return None


def _is_sound(profile: Any) -> bool:
    """Whether every figure that a run takes from it is what it should be."""
    floor_us, limit = profile["floor_us"], profile.get("limit")
    figures = [floor_us["p50"], floor_us["p99"]]
    if limit is not None:
        figures.append(limit["events_per_s"])
    return all(type(figure) in (int, float) and 0 <= figure < math.inf for figure in figures)


def save(profile: dict[str, Any], tls: bool) -> None:
    """Keep `profile`, and the other kind's beside it if it is of the same machine."""
    other = load(not tls)
    document = {
        "machine": _machine(),
        "tls" if tls else "plain": profile,
        **({"plain" if tls else "tls": other} if other else {}),
    }
    file = path()
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise RecordingError(
            f"the calibration could not be kept in {file}: {error.strerror}"
        ) from None


def _machine() -> str:
    """A profile does not hold on another machine or kernel."""
    return f"{platform.node()} {platform.release()} {os.cpu_count()} CPUs"
