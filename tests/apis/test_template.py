"""An API from a template file: what it asks, what it reads, and what is wrong with bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay import Replay, bench_one, pieces, replaying, run, sample

from legato import apis
from legato.apis.jsonpath import compile_path, find
from legato.errors import UsageError

TOML = """
name = "mine"
path = "/infer/{model}"
framing = "ndjson"
content_type = "application/vnd.mine"

[headers]
X-Key = "{key}"
X-Team = "music-and-time"

[body]
question = "Q: {prompt}"
limits = { new = "{output_tokens}", old = 1 }

[read]
text = "data.piece"
tokens = "$.data.count"
prompt_tokens = "data['in']"
finish = "data.why"
error = "fault"
"""
OPENAI_LIKE: dict[str, Any] = {
    "path": "/go",
    "body": {"p": "{prompt}", "n": "{output_tokens}"},
    "read": {"text": "choices[0].text", "output_tokens": "usage.total"},
    "end": "[DONE]",
}


def write(folder: Path, document: Any) -> str:
    file = folder / "api.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return str(file)


def test_a_template_asks_and_reads_as_it_says(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TOML, encoding="utf-8")
    with replaying(Replay(sample("template"), "application/vnd.mine; v=1")) as server:
        stream = bench_one(
            f"{server.url}/v1",
            tmp_path / "run.parquet",
            *("--api", file, "--model", "m"),
            extra={"LEGATO_API_KEY": "a-secret-key"},
        )
    asked = server.posted
    assert asked.path == "/v1/infer/m"
    assert asked.headers["x-key"] == "a-secret-key"
    assert asked.headers["x-team"] == "music-and-time"
    assert "authorization" not in asked.headers
    assert asked.document["question"].startswith("Q: ")
    assert asked.document["limits"] == {"new": 7, "old": 1}
    assert (stream.status, stream.api, stream.token_source) == ("ok", "mine", "token_ids")
    assert pieces(stream) == [("content", 2, "Hel"), ("content", 1, "lo")]
    assert stream.prompt_tokens == 9


def test_what_a_crash_left_of_a_template_run_reads_without_the_file(tmp_path: Path) -> None:
    api = apis.named(write(tmp_path, {**OPENAI_LIKE, "headers": {"X-Key": "my-own-secret"}}))
    assert api.document is not None
    assert "my-own-secret" not in json.dumps(api.document)
    again = apis.named(json.loads(json.dumps(api.document)))
    event = b'{"choices": [{"text": "Hi"}], "usage": {"total": 1}}'
    assert again.decode(event) == api.decode(event)
    assert again.decode(b"[DONE]").terminal
    assert (again.ndjson, again.end) == (False, "[DONE]")


def test_a_secret_of_the_template_that_a_server_echoes_is_not_recorded(tmp_path: Path) -> None:
    document = {**OPENAI_LIKE, "headers": {"X-Key": "my-own-secret"}}
    echo = [b'data: {"choices": [{"text": "my-own-secret!"}]}\n\n', b"data: [DONE]\n\n"]
    with replaying(Replay(echo, "text/event-stream")) as server:
        out = tmp_path / "run.parquet"
        stream = bench_one(server.url, out, "--api", write(tmp_path, document))
    assert pieces(stream) == [("content", 1, "[key]!")]
    assert b"my-own-secret" not in out.read_bytes()


def test_a_number_that_was_not_asked_for_is_left_out(tmp_path: Path) -> None:
    api = apis.named(write(tmp_path, OPENAI_LIKE))
    assert api.body("m", "the prompt", None, {}) == {"p": "the prompt"}
    assert api.body("m", "the prompt", 7, {"t": 0}) == {"p": "the prompt", "n": 7, "t": 0}


def test_a_template_without_a_word_on_the_key_sends_it_as_usual(tmp_path: Path) -> None:
    api = apis.named(write(tmp_path, OPENAI_LIKE))
    assert api.headers("k") == {"Authorization": "Bearer k"}
    assert api.headers(None) == {}


def test_a_template_that_needs_a_key_says_so(tmp_path: Path) -> None:
    api = apis.named(write(tmp_path, {**OPENAI_LIKE, "headers": {"X": "{key}"}}))
    with pytest.raises(UsageError, match="need a key"):
        api.headers(None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"path": "go"}, "'path' must start with '/'"),
        ({"path": "/a b"}, "no white space"),
        ({"framing": "grpc"}, "'framing' must be one of sse, ndjson"),
        ({"body": {"p": "x"}}, "must stand once in 'body', not 0 times"),
        ({"body": {"p": ["{prompt}", "{prompt}"]}}, "not 2 times"),
        ({"body": "x"}, "'body' must be a table"),
        ({"read": {"finish": "a"}}, "says not where the text is"),
        ({"read": {"text": "a..b"}}, "is not a path such as"),
        ({"read": {"text": 3}}, "must be a path such as"),
        ({"read": {"text": "a", "words": "b"}}, "knows no 'words'"),
        ({"body": {"p": "{prompt}", "x": float("nan")}}, "a value that JSON cannot"),
        ({"content_type": "a\r\nB: c"}, "none that HTTP can carry"),
        ({"headers": {"X": "a\r\nB: c"}}, "none that HTTP can carry"),
        ({"url": "http://x"}, "there is no field 'url'"),
    ],
)
def test_what_is_wrong_with_a_template_is_told(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    file = write(tmp_path, OPENAI_LIKE | change)
    with pytest.raises(UsageError) as caught:
        apis.named(file)
    assert words in str(caught.value)
    assert file in str(caught.value)


def test_a_template_that_is_no_toml_is_told_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("path = ", encoding="utf-8")
    code, out, err = run("bench", "http://127.0.0.1:1", "--api", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is not TOML" in err


STEPS = st.lists(st.integers(-3, 5) | st.text("abc_-1", min_size=1, max_size=4), min_size=1)


@given(STEPS, st.text(max_size=3))
def test_a_path_finds_what_lies_at_its_end(steps: list[str | int], leaf: str) -> None:
    document: Any = leaf
    for step in reversed(steps):
        document = [document] * (abs(step) + 1) if isinstance(step, int) else {step: document}
    path = "".join(f"[{s}]" if isinstance(s, int) else f"['{s}']" for s in steps)
    assert compile_path(path) == tuple(steps)
    assert find(document, compile_path(path)) == leaf
    assert find(document, (*compile_path(path), "beyond")) is None
    assert find(document, (*compile_path(path), 0)) is None
