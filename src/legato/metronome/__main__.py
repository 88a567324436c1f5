"""The metronome for programs: settings as one JSON argument, a JSON line when it listens and
another when it stops. People use `legato metronome`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from legato.errors import LegatoError
from legato.metronome.pattern import Pattern
from legato.metronome.serve import Settings, serve
from legato.metronome.tls import TlsFiles


def settings_of(document: dict[str, Any]) -> Settings:
    truth, tls = document["truth"], document["tls"]
    return Settings(
        pattern=Pattern(**document["pattern"]),
        host=document["host"],
        port=document["port"],
        truth=Path(truth) if truth else None,
        tls=TlsFiles(Path(tls[0]), Path(tls[1])) if tls else None,
        stops_with_stdin=True,
    )


def say(document: dict[str, Any]) -> None:
    try:
        print(json.dumps(document), flush=True)
    except BrokenPipeError:  # whoever started this is gone
        sys.stderr.close()


def main() -> int:
    try:
        settings = settings_of(json.loads(sys.argv[1]))
        say({"stats": serve(settings, lambda port: say({"port": port}))})
    except LegatoError as error:
        say({"error": str(error)})
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
