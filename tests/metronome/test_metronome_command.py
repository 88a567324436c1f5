"""`legato metronome` as a person uses it."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from metronome_client import ask

from legato.errors import UsageError
from legato.metronome import command, truth
from legato.metronome.launch import running
from legato.metronome.pattern import FAULTS, Pattern, fields

PROGRAM = """
import argparse, sys
from legato.errors import LegatoError
from legato.metronome import command
parser = argparse.ArgumentParser()
command.add_arguments(parser)
try:
    sys.exit(command.run(parser.parse_args()))
except LegatoError as error:
    sys.exit(f"{error.exit_code} {error}")
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_when_stopped_how_late_it_was(
    tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "truth"
    process = start("--port", "0", "--gap-ms", "1", "--tokens", "5", "--truth", str(path))
    assert process.stdout is not None
    first, second = process.stdout.readline(), process.stdout.readline()
    url = first.split()[-1]
    assert second.split() == ["Measure", "it:", "legato", "bench", url]
    reply = ask(int(url.rpartition(":")[2].partition("/")[0]))
    assert len(reply.deltas()) == 5
    process.send_signal(number)
    out, problems = process.communicate(timeout=20)
    assert process.returncode == 0
    assert problems == ""
    assert "Stopped: 1 request, 8 events in 5 writes. Its own lateness: p50" in out
    assert len(truth.load(path).events) == 8


def test_every_field_of_the_pattern_is_an_option_with_its_default() -> None:
    args = parse()
    assert Pattern(**{item.name: getattr(args, item.name) for item in fields()}) == Pattern()
    changed = parse("--gap-ms", "2.5", "--role-early", "--no-usage", "--stall-at", "7")
    assert (changed.gap_ms, changed.role_early) == (2.5, True)
    assert (changed.usage, changed.stall_at) == (False, 7)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--gap-ms", "-1"), "--gap-ms is -1.0; it must be from 0"),
        (("--stall-at", "5"), "--stall-at and --stall-chance need --stall-ms, the length"),
        (("--stall-ms", "5"), "--stall-ms needs --stall-at or --stall-chance"),
        (("--tls-cert", "a.pem"), "--tls-cert and --tls-key go together"),
        (("--port", "99999"), "the port is 99999; it must be from 0 to 65535"),
        (("--host", "no.such.host.invalid"), "cannot listen on no.such.host.invalid"),
    ],
)
def test_wrong_usage_is_told_in_one_sentence(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError) as problem:
        command.run(parse(*arguments))
    assert words in str(problem.value)
    assert problem.value.exit_code == 2


def test_help_shows_the_default_of_every_switch(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--help")
    shown = " ".join(capsys.readouterr().out.split())
    for item in fields():
        if isinstance(item.default, bool):
            assert f"{item.metadata['about']} ({'on' if item.default else 'off'})" in shown


def test_a_request_s_own_pattern_is_refused_in_the_names_of_its_json() -> None:
    with running(Pattern()) as metronome:
        reply = ask(metronome.port, metronome={"gap_ms": "{}"})
    assert reply.status == 400
    assert "gap_ms is '{}'; it must be a number" in reply.body.decode()


def test_the_command_and_the_server_load_neither_numpy_nor_pyarrow() -> None:
    program = (
        "import sys; import legato.metronome.command, legato.metronome.__main__, "
        "legato.metronome.launch; sys.exit(bool({'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_manual_names_every_option_and_every_fault() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "metronome.md").read_text()
    options = {"--" + item.name.replace("_", "-") for item in fields()}
    assert {option for option in options if f"`{option}`" not in manual} == set()
    assert {
        fault for fault in FAULTS if fault != "none" and f"| `{fault}` |" not in manual
    } == set()
