"""Bad usage of `legato bench`: exit 2, one sentence that names the mistake, nothing on the disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
    "http://[::1": "is not a URL",
    "http://localhost:99999": "1 to 65535",
    "http://localhost:port": "1 to 65535",
    "http://me:secret@localhost": "holds credentials",
    "http://localhost/v1?key=1": "without '?'",
    "http://a..b": "a host that is no name",
    f"http://{'a' * 70}": "a host that is no name",
    "http://localhost/a b": "write it as %20",
    "http://localhost/ü": "write it as %C3%BC",
}


# No URL where the load is wrong: were it not refused first, a metronome would be measured.
CASES = {
    **LOADS,
    **{name: (["TARGET", *arguments], words) for name, (arguments, words) in QUESTIONS.items()},
    **{name: (["TARGET", *arguments], words) for name, (arguments, words) in OUTPUTS.items()},
    **{url: ([url], words) for url, words in URLS.items()},
}


def make_desk(folder: Path) -> Path:
    """A folder with the files that the cases name."""
    folder.mkdir()
    (folder / "blank").write_text("\n\n")
    (folder / "words").write_text("not a key, not a tokenizer\n")
    (folder / "bytes").write_bytes(b"caf\xe9\n")
    (folder / "taken.parquet").write_text("mine")
    (folder / "crashed.parquet.partial").mkdir()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def refused(desk: Path, arguments: list[str], prefix: tuple[str, ...] = ()) -> Finished:
    """Run the command in `desk`; it must leave the folder as it was."""
    before = contents(desk)
    done = run("bench", *arguments, cwd=desk, prefix=prefix)
    assert contents(desk) == before
    return done


def assert_refused(done: Finished, words: str) -> None:
    assert done.code == 2, done.err
    assert done.is_one_sentence(), done
    assert words in done.err


Answers = dict[str, Future[Finished]]


@pytest.fixture(scope="module")
def answers(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """What the command says to each case; a few at a time."""
    folder = tmp_path_factory.mktemp("usage")
    with ThreadPoolExecutor(3) as pool:
        found = {}
        for number, (name, (arguments, _)) in enumerate(CASES.items()):
            desk = make_desk(folder / str(number))
            typed = [target if argument == "TARGET" else argument for argument in arguments]
            found[name] = pool.submit(refused, desk, typed)
        yield found


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_is_refused_in_one_sentence(answers: Answers, case: str) -> None:
    assert_refused(answers[case].result(), CASES[case][1])


def test_a_folder_that_cannot_be_written_is_refused(target: str, tmp_path: Path) -> None:
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        # Root may write anywhere, unless that very privilege is dropped.
        if shutil.which("setpriv") is None:
            pytest.skip("runs as root, and setpriv is not there to drop the right to write")
        prefix = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    (tmp_path / "locked").mkdir(mode=0o555)
    done = refused(tmp_path, [target, "--out", "locked/run.parquet"], prefix)
    assert_refused(done, "locked/run.parquet.partial: Permission denied")
