"""The `legato` command: parses, calls, prints. A sub-command's module is loaded only when it is
the one that was asked for, and every error becomes one sentence here."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from importlib import import_module
from typing import NoReturn

import legato
from legato.errors import LegatoError, UsageError

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
invalid as a measurement; 4 the target failed or does not stream"""


class _Parser(argparse.ArgumentParser):
    """One sentence on wrong usage, instead of the usage text and an error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see '{self.prog} --help')")


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    # Whoever ends a job politely (a scheduler, a container) gets what Ctrl-C gives.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(arguments)
    except LegatoError as error:
        print(f"legato: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has gone (`legato report … | head`): nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


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
    for name, (module, purpose) in COMMANDS.items():
        child = commands.add_parser(
            name,
            help=purpose,
            description=purpose[0].upper() + purpose[1:] + ".",
            allow_abbrev=False,
        )
        if name == wanted:
            import_module(module).add_arguments(child)
    parsed = parser.parse_args(arguments)
    if parsed.command is None:
        parser.print_help()
        return 0
    module, _ = COMMANDS[parsed.command]
    code: int = import_module(module).run(parsed)
    return code


if __name__ == "__main__":
    sys.exit(main())
