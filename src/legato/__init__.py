"""legato: inter-token latency of streamed LLM answers, measured with a known error.

import legato
recording = legato.load("run.parquet")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["LegatoError", "Recording", "Stream", "__version__", "load"]

if TYPE_CHECKING:
    from legato.errors import LegatoError
    from legato.recording import Recording, Stream
    from legato.wire.folder import load


def __getattr__(name: str) -> Any:
    # Lazily, so that `import legato` and `legato --help` load neither numpy nor pyarrow.
    if name == "LegatoError":
        from legato.errors import LegatoError

        return LegatoError
    if name in ("Recording", "Stream"):
        from legato import recording

        return getattr(recording, name)
    if name == "load":
        from legato.wire.folder import load

        return load
    raise AttributeError(f"module 'legato' has no attribute {name!r}")
