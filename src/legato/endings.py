"""What the client writes on streams that it left itself. Whoever counts failures must tell these
from the server's, so the words stand in one place, and nothing heavy is loaded for them."""

from __future__ import annotations

STOPPED = "stopped before the end"
WORKER_DIED = "the worker that read this stream died"
LEFT_OPEN = (STOPPED, WORKER_DIED)
