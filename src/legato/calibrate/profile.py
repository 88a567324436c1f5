"""The kept result of a calibration: what `bench` takes its calibrated floor from."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

LABEL = "loopback, excluding NIC coalescing"


def path() -> Path:
    """In the user's cache folder: a profile is this machine's and can be made again."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "legato" / "calibration.json"


def load(tls: bool) -> dict[str, Any] | None:
    """This machine's profile for plain or TLS connections; None where it was never made here."""
    try:
        document = json.loads(path().read_text(encoding="utf-8"))
        if document["machine"] != _machine():
            return None
        profile: dict[str, Any] | None = document.get("tls" if tls else "plain")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return profile


def save(profile: dict[str, Any], tls: bool) -> None:
    """Keep `profile`, and the other kind's beside it if it is of the same machine."""
    other = load(not tls)
    document = {
        "machine": _machine(),
        "tls" if tls else "plain": profile,
        **({"plain" if tls else "tls": other} if other else {}),
    }
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
    temporary.replace(file)


def _machine() -> str:
    """A profile does not hold on another machine or kernel."""
    return f"{platform.node()} {platform.release()} {os.cpu_count()} CPUs"
