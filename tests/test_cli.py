"""The command line itself: quick help, wrong usage in one sentence, and what `report` refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from legato.cli import COMMANDS, FAULT
from legato.recording import CONTENT, Recording, Stream

HEAVY = ("numpy", "pyarrow", "rich")
LEGATO = [sys.executable, "-m", "legato.cli"]


def legato(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LEGATO, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("legato: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], [], ["--version"]], ids=" ".join)
def test_help_and_version_load_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *LEGATO[1:], *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(("usage: legato", "legato "))
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.split("\n")}
    assert "legato" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_help_names_every_command_and_the_exit_codes() -> None:
    shown = legato("--help").stdout
    first_words = [line.split()[0] for line in shown.splitlines() if line.strip()]
    assert set(COMMANDS) <= set(first_words)
    assert "exit codes" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    done = legato(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: legato {name}" in done.stdout


def test_the_manual_of_bench_names_every_option_and_exit_code() -> None:
    manual = (Path(__file__).parents[1] / "docs" / "bench.md").read_text()
    options = re.findall(r"^  (--[a-z-]+)", legato("bench", "--help").stdout, re.MULTILINE)
    assert "--stamps" in options
    assert [option for option in options if f"`{option}" not in manual] == []
    codes = re.findall(r"\b(\d+) [a-z]", legato("--help").stdout.partition("exit codes:")[2])
    assert codes[:2] == ["0", "1"]
    assert [code for code in codes if f"\n| {code} |" not in manual] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["--nosuch"],
        ["bench", "--nosuch"],
        ["bench", "--concurr", "3"],
        ["bench", "http://localhost:1", "http://localhost:2"],
        ["report"],
        ["report", "--nosuch", "a.parquet"],
        ["metronome", "--nosuch"],
    ],
    ids=" ".join,
)
def test_an_unknown_command_or_option_is_refused_in_one_sentence(arguments: list[str]) -> None:
    done = legato(*arguments)
    assert_refused(done)
    assert "--help" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["benhc"], "there is no command 'benhc'; did you mean bench? (see 'legato --help')"),
        (["bench", "--concurency", "3"], "did you mean --concurrency? (see 'legato bench --help')"),
        (["bench", "--concurency=3"], "there is no option --concurency; did you mean"),
        (["bench", "http://h:1", "--rat", "3"], "did you mean --rate? (see 'legato bench --help')"),
        (["metronome", "--gap", "3"], "no option --gap; did you mean --gap-ms?"),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_what_was_meant(
    arguments: list[str], words: str
) -> None:
    done = legato(*arguments)
    assert_refused(done)
    assert words in done.stderr


# --- output that cannot be written ------------------------------------------------------------


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    size = 30
    path = tmp_path_factory.mktemp("cli") / "run.parquet"
    stream = Stream(
        stream_id=1,
        scheduled_ns=0,
        ended_ns=10**9,
        status="ok",
        sent_ns=0,
        arrival_ns=[n * 10**7 for n in range(1, size + 1)],
        lag_ns=[0] * size,
        early_ns=[0] * size,
        read_index=list(range(size)),
        segments=[1] * size,
        tokens=[1] * size,
        kind=[CONTENT] * size,
        flags=[8] * size,
    )
    Recording.from_streams([stream]).write(path)
    return path


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("mode", [[], ["--json"]], ids=["page", "json"])
def test_a_full_disk_under_the_output_is_told_in_one_sentence(
    recording: Path, mode: list[str], unbuffered: str
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*LEGATO, "report", str(recording), *mode],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "legato: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("arguments", [["report"], ["report", "--json"], ["--help"]], ids=" ".join)
def test_nothing_is_wrong_when_nobody_reads_the_output(
    recording: Path, arguments: list[str]
) -> None:
    run = [str(recording)] if "report" in arguments else []
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*LEGATO, *arguments, *run], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


# --- what others wrote ------------------------------------------------------------------------


class _Models(BaseHTTPRequestHandler):
    """A server whose list of models is `answer`."""

    answer = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def models() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), type("Handler", (_Models,), {})) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_name_with_escapes_and_line_breaks_is_shown_as_one_harmless_line(
    models: HTTPServer,
) -> None:
    names = ["\x1b]0;pwn\x07\nsecond line\u2028third\x9b31m"]
    answer = json.dumps({"data": [{"id": name} for name in names]}).encode()
    models.RequestHandlerClass.answer = answer  # type: ignore[attr-defined]
    url = f"http://127.0.0.1:{models.server_port}/v1"
    done = legato("bench", url, "--model", "mine")
    assert_refused(done)
    assert "it has ?]0;pwn? second line third?31m" in done.stderr


def test_a_path_with_escapes_is_shown_as_one_harmless_line() -> None:
    done = legato("report", "a\x1b[2J\nb.parquet", PYTHONIOENCODING="ascii")
    assert_refused(done)
    assert "a?[2J b.parquet" in done.stderr


def test_a_fault_of_our_own_is_one_sentence_unless_the_traceback_is_asked_for() -> None:
    program = (
        "import sys; from legato import cli; cli.COMMANDS['bench'] = ('json.decoder', 'broken');"
        "sys.exit(cli.main(['bench']))"
    )
    for debug in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "LEGATO_DEBUG": debug},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "AttributeError" in done.stderr
        assert done.returncode == (1 if debug else FAULT)
        assert ("Traceback" in done.stderr) == bool(debug)
        assert (len(done.stderr.splitlines()) == 1) != bool(debug)


# --- what report refuses ----------------------------------------------------------------------


def test_report_of_a_missing_file_says_so() -> None:
    done = legato("report", "nosuch.parquet")
    assert_refused(done)
    assert "nosuch.parquet" in done.stderr


def test_report_of_a_text_file_says_that_it_is_no_recording(tmp_path: Path) -> None:
    file = tmp_path / "notes.parquet"
    file.write_text("these are notes\n" * 100)
    done = legato("report", str(file))
    assert_refused(done)
    assert f"{file} is not a readable recording" in done.stderr


def test_report_of_a_foreign_parquet_file_says_that_it_is_no_recording(tmp_path: Path) -> None:
    file = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"itl": [1.0, 2.0]}), file)
    done = legato("report", str(file))
    assert_refused(done)
    assert "not a recording of legato" in done.stderr


def test_report_of_an_empty_folder_says_so(tmp_path: Path) -> None:
    done = legato("report", str(tmp_path))
    assert_refused(done)
    assert str(tmp_path) in done.stderr


def test_report_of_a_partial_folder_whose_plan_is_torn_says_so(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"meta": {')
    done = legato("report", str(tmp_path))
    assert_refused(done)
    assert "plan.json" in done.stderr


def test_report_of_a_damaged_recording_says_what_is_wrong(recording: Path, tmp_path: Path) -> None:
    table = pq.read_table(recording)
    at = table.schema.get_field_index("kind")
    file = tmp_path / "damaged.parquet"
    pq.write_table(table.set_column(at, "kind", pa.array([["song"] * 30])), file)
    done = legato("report", str(file))
    assert_refused(done)
    assert "its column 'kind' has 'song'" in done.stderr
