"""Bad usage of `legato bench`: exit 2, one sentence that names the mistake, nothing on the disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from command_line import Finished, run

# what is typed after the URL: (arguments, words that the sentence must hold)
LOADS: dict[str, tuple[list[str], str]] = {
    "no streams": (["--concurrency", "0"], "--concurrency 0"),
    "negative streams": (["--concurrency", "-4"], "--concurrency -4"),
    "streams not a number": (["--concurrency", "many"], "'many'"),
    "no requests": (["--requests", "0"], "--requests 0"),
    "more requests than can be counted": (["--requests", "99999999999"], "4294967295 requests"),
    "fewer requests than streams": (["--requests", "3", "--concurrency", "5"], "never be reached"),
    "negative rate": (["--rate=-1"], "--rate -1"),
    "rate zero": (["--rate", "0"], "--rate 0"),
    "rate not a number": (["--rate", "nan"], "--rate nan"),
    "endless rate": (["--rate", "inf"], "--rate inf"),
    "streams and rate": (["--concurrency", "2", "--rate", "5"], "--concurrency and --rate"),
    "requests and duration": (["--requests", "9", "--duration", "1"], "--requests and --duration"),
    "endless duration": (["--duration", "inf"], "--duration inf"),
    "no workers": (["--workers", "0"], "--workers 0"),
    "more workers than streams": (["--workers", "3", "--concurrency", "2"], "--workers 3"),
    "negative warm-up": (["--warmup", "-1"], "--warmup -1"),
    "timeout zero": (["--idle-timeout", "0"], "--idle-timeout 0"),
    "endless timeout": (["--total-timeout", "inf"], "--total-timeout inf"),
}

QUESTIONS: dict[str, tuple[list[str], str]] = {
    "unknown api": (["--api", "telepathy"], "choose one of chat, completions"),
    "unknown model": (["--model", "nosuch"], "it has metronome"),
    "no prompt tokens": (["--prompt-tokens", "0"], "--prompt-tokens 0"),
    "no output tokens": (["--output-tokens", "0"], "--output-tokens 0"),
    "no such prompt file": (["--prompt-file", "nosuch.txt"], "nosuch.txt"),
    "prompt file without a prompt": (["--prompt-file", "blank"], "holds no prompt"),
    "prompt file that is not text": (["--prompt-file", "bytes"], "not UTF-8"),
    "prompt file and prompt tokens": (
        ["--prompt-file", "words", "--prompt-tokens", "5"],
        "--prompt-file and --prompt-tokens",
    ),
    "body that is not JSON": (["--extra-body", "{temperature: 1}"], "--extra-body is not JSON"),
    "body nested without end": (["--extra-body", "[" * 100_000], "--extra-body is not JSON"),
    "body that is a list": (["--extra-body", "[1]"], "must be a JSON object"),
    "several answers": (["--extra-body", '{"n": 2}'], "n answers"),
    "streaming off": (["--extra-body", '{"stream": false}'], "streaming off"),
    "prompt replaced": (["--extra-body", '{"messages": []}'], "replaces the prompt"),
    "header without a colon": (["--header", "X-Tenant blue"], "NAME: VALUE"),
    "header without a name": (["--header", ": blue"], "NAME: VALUE"),
    "header of two lines": (["--header", "X-A: b\r\nX-C: d"], "'X-A'"),
    "header that is not ASCII": (["--header", "X-A: größe"], "'X-A'"),
    "key file missing": (["--api-key-file", "nosuch.key"], "nosuch.key"),
    "key file empty": (["--api-key-file", "blank"], "blank is empty"),
    "key that no header can carry": (["--api-key-file", "words"], "the API key"),
    "tokenizer missing": (["--tokenizer", "nosuch"], "no tokenizer at nosuch"),
    "tokenizer unreadable": (["--tokenizer", "words"], "not a readable tokenizer"),
}

OUTPUTS: dict[str, tuple[list[str], str]] = {
    "another ending": (["--out", "run.json"], "must end in .parquet"),
    "no ending": (["--out", "run"], "must end in .parquet"),
    "folder missing": (["--out", "nosuch/run.parquet"], "no folder nosuch"),
    "file exists": (["--out", "taken.parquet"], "taken.parquet exists"),
    "an earlier run's capture": (["--out", "crashed.parquet"], "crashed.parquet.partial"),
}

URLS = {
    "localhost:8000": "http://localhost:8000",
    "localhost": "http://localhost",
    "ftp://localhost/v1": "http:// or https://",
    "http://": "http:// or https://",
    "http://localhost:99999": "1 to 65535",
    "http://localhost:port": "1 to 65535",
    "http://me:secret@localhost": "holds credentials",
    "http://localhost/v1?key=1": "without '?'",
}


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with the files that the cases name."""
    (tmp_path / "blank").write_text("\n\n")
    (tmp_path / "words").write_text("not a key, not a tokenizer\n")
    (tmp_path / "bytes").write_bytes(b"caf\xe9\n")
    (tmp_path / "taken.parquet").write_text("mine")
    (tmp_path / "crashed.parquet.partial").mkdir()
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def refused(desk: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> Finished:
    """Run the command in `desk`; it must leave the folder as it was."""
    before = contents(desk)
    done = run("bench", *arguments, cwd=desk, prefix=prefix)
    assert contents(desk) == before
    return done


def assert_refused(done: Finished, words: str) -> None:
    assert done.code == 2, done.err
    assert done.is_one_sentence(), done
    assert words in done.err


@pytest.mark.parametrize(("arguments", "words"), LOADS.values(), ids=LOADS)
def test_a_load_that_cannot_be_is_refused(desk: Path, arguments: list[str], words: str) -> None:
    # No URL: were the load not refused first, this would start a metronome and measure it.
    assert_refused(refused(desk, *arguments), words)


@pytest.mark.parametrize(("arguments", "words"), QUESTIONS.values(), ids=QUESTIONS)
def test_a_request_that_cannot_be_is_refused(
    target: str, desk: Path, arguments: list[str], words: str
) -> None:
    assert_refused(refused(desk, target, *arguments), words)


@pytest.mark.parametrize(("arguments", "words"), OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_that_cannot_be_is_refused(
    target: str, desk: Path, arguments: list[str], words: str
) -> None:
    assert_refused(refused(desk, target, *arguments), words)


@pytest.mark.parametrize(("url", "words"), URLS.items(), ids=URLS)
def test_a_url_that_cannot_be_is_refused(desk: Path, url: str, words: str) -> None:
    assert_refused(refused(desk, url), words)


def test_a_folder_that_cannot_be_written_is_refused(target: str, desk: Path) -> None:
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        # Root may write anywhere, unless that very privilege is dropped.
        if shutil.which("setpriv") is None:
            pytest.skip("runs as root, and setpriv is not there to drop the right to write")
        prefix = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    locked = desk / "locked"
    locked.mkdir(mode=0o555)
    done = refused(desk, target, "--out", "locked/run.parquet", prefix=prefix)
    assert_refused(done, "locked/run.parquet.partial: Permission denied")
