"""A process that decodes one worker's capture: `folder.finish` starts one for each worker.

It is told its task on standard input and answers on standard output, both in JSON.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from legato.errors import LegatoError, RecordingError


def decode_all(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each task's decoding gave, in order; RecordingError where one failed."""
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_started(task)) for task in tasks]
        return [_answer(process) for process in processes]


@contextlib.contextmanager
def _started(task: dict[str, Any]) -> Any:
    # In a group of its own, so that Ctrl-C is the parent's alone. It ends with its part, so none
    # is left waiting where the parent is killed.
    process = subprocess.Popen(
        [sys.executable, "-m", "legato.wire.part"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
    )
    with process:
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(json.dumps(task).encode())
            yield process
        finally:
            process.kill()


def _answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.read()
    answer: dict[str, Any] = (
        json.loads(line) if line else {"error": "a process that decoded the capture died"}
    )
    if "error" in answer:
        raise RecordingError(answer["error"])
    return answer


def main() -> int:
    from legato.wire.folder import decode_part

    text = sys.stdin.read()
    if not text:
        return 0  # the parent died before it said anything
    task = json.loads(text)
    try:
        answer = decode_part(Path(task["folder"]), task["worker"], task["decoding"])
    except LegatoError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
