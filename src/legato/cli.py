"""The `legato` command: parses, calls, prints. A sub-command's module is loaded only when it is
the one that was asked for, and every error becomes one sentence here."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import os
import signal
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import legato
from legato.errors import LegatoError, UsageError
from legato.legible import sentence

# name: (module with add_arguments and run, what it does)
COMMANDS = {
    "bench": (
        "legato.traffic.command",
        "measure an endpoint under load; with no URL, measure the metronome",
    ),
    "sweep": ("legato.traffic.sweep_command", "measure at rising load and find the knee"),
    "capacity": ("legato.capacity.command", "find the highest load that keeps an SLO"),
    "report": ("legato.report.command", "show recordings again"),
    "explain": ("legato.explain.command", "say which cause goes with how much of the gap"),
    "compare": ("legato.compare.command", "say whether recordings differ, and how sure that is"),
    "import": ("legato.exchange.importing", "make a recording of another tool's result file"),
    "export": ("legato.exchange.exporting", "write a recording in a format other programs read"),
    "calibrate": (
        "legato.calibrate.command",
        "measure the instrument's own error on this machine at rising load",
    ),
    "metronome": (
        "legato.metronome.command",
        "serve a reference signal: tokens on a known schedule, with a log of the truth",
    ),
}

_DESCRIPTION = "Inter-token latency of streamed LLM answers, measured with a known error."
_EPILOG = """examples:
  legato bench                                   measure the embedded metronome
  legato bench http://localhost:8000/v1          measure your endpoint
  legato bench URL --concurrency 64 --requests 500 --out run.parquet
  legato report run.parquet
  legato calibrate

exit codes: 0 fine; 1 a gate failed; 2 wrong usage or bad input; 3 the run is
invalid as a measurement; 4 the target failed or does not stream; 70 a fault of
legato itself; 130 interrupted before anything was measured"""

FAULT = 70  # as sysexits.h has it
DEBUG = "LEGATO_DEBUG"


class _Parser(argparse.ArgumentParser):
    """One sentence on wrong usage, instead of the usage text and an error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see '{self.prog} --help')")


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    # Whoever ends a job politely (a scheduler, a container) gets what Ctrl-C gives.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = _run(arguments)
        _flush()
        return code
    except LegatoError as error:
        _say(str(error))
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has gone (`legato report … | head`): nothing is wrong.
        _abandon_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        _say(_trouble(error))
        _abandon_output()
        return 2
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        _say(_fault(error))
        return FAULT


def _run(arguments: list[str]) -> int:
    parser = _Parser(
        prog="legato",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"legato {legato.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    wanted = next((argument for argument in arguments if not argument.startswith("-")), None)
    if wanted is not None and wanted not in COMMANDS:
        parser.error(f"there is no command {wanted!r}{_did_you_mean(wanted, COMMANDS)}")
    child: argparse.ArgumentParser = parser
    for name, (module, purpose) in COMMANDS.items():
        added = commands.add_parser(
            name,
            help=purpose,
            description=purpose[0].upper() + purpose[1:] + ".",
            allow_abbrev=False,
        )
        if name == wanted:
            child = added
            import_module(module).add_arguments(child)
    try:
        parsed, unknown = parser.parse_known_args(arguments)
        if unknown:
            _refuse(child, unknown)
        if parsed.command is None:
            parser.print_help()
            return 0
        module, _ = COMMANDS[parsed.command]
        code: int = import_module(module).run(parsed)
        return code
    except SystemExit as stop:
        # argparse ends so after --help, and rich where nobody reads its output any more.
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        return stop.code if isinstance(stop.code, int) else 0


def _refuse(parser: argparse.ArgumentParser, unknown: list[str]) -> NoReturn:
    """Say what is not known; an option before a word, since the word may be its value."""
    given = next((word for word in unknown if word.startswith("-")), unknown[0])
    option, _, _ = given.partition("=")
    if not option.startswith("-"):
        parser.error(f"there is one argument too many: {given!r}")
    known = [name for action in parser._actions for name in action.option_strings]
    parser.error(f"there is no option {option}{_did_you_mean(option, known)}")


def _did_you_mean(given: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(given, list(known), n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


def _say(text: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(sentence(f"legato: {text}", sys.stderr.encoding), file=sys.stderr)


def _trouble(error: OSError) -> str:
    """What the system refused, in its words."""
    why = error.strerror or str(error) or type(error).__name__
    if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        return f"the output cannot be written: {why}"
    return why if error.filename is None else f"{error.filename}: {why}"


def _fault(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"this is a fault of legato itself, please report it: {type(error).__name__}: {error}"
        f" ({Path(frame.filename).name}:{frame.lineno}; {DEBUG}=1 shows the way there)"
    )


def _flush() -> None:
    """Now, while a failure can still be told; the interpreter's own flush could only fail."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _abandon_output() -> None:
    """What is still buffered goes nowhere, or the interpreter would fail on it as it ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
