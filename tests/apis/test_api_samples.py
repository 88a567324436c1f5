"""Each API against its documented stream, byte for byte, through `legato bench`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from replay import Asked, Replay, bench_one, pieces, replaying, sample

from legato.apis.jsonpath import compile_path, find
from legato.recording import KINDS, Stream

EVENT_STREAM = "text/event-stream"
OPENAI_MODELS = {"object": "list", "data": [{"id": "tiny", "object": "model", "owned_by": "me"}]}


@dataclass(frozen=True)
class Case:
    """An API: what its server lists, what must be asked of it and what its sample holds."""

    api: str
    listings: dict[str, Any]
    path: str
    prompt: str  # where in the body it stands
    asked: dict[str, Any]
    pieces: list[tuple[str, int, str]]
    source: str
    kinds: list[str]  # of all chunks, in order, without repetitions
    usage: tuple[int | None, int | None, int | None]  # prompt, output, cached
    content_type: str = EVENT_STREAM
    response_id: str | None = None
    options: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.api


CASES = [
    Case(
        api="chat",
        listings={"/v1/models": OPENAI_MODELS},
        path="/v1/chat/completions",
        prompt="messages[0].content",
        asked={"model": "tiny", "max_tokens": 7, "stream_options": {"include_usage": True}},
        pieces=[("content", 1, "Hello"), ("content", 1, "!")],
        source="usage_spread",
        kinds=["role", "content", "finish", "usage", "done"],
        usage=(19, 2, 0),
        response_id="chatcmpl-123",
        headers={"accept": EVENT_STREAM, "authorization": "Bearer a-secret-key"},
    ),
    Case(
        api="completions",
        listings={"/v1/models": OPENAI_MODELS},
        path="/v1/completions",
        prompt="prompt",
        asked={"model": "tiny", "max_tokens": 7, "stream": True},
        pieces=[("content", 1, " wide"), ("content", 1, " open")],
        source="chunks",
        kinds=["content", "finish", "done"],
        usage=(None, None, None),
        response_id="cmpl-6f3c",
    ),
    Case(
        api="responses",
        listings={"/v1/models": OPENAI_MODELS},
        path="/v1/responses",
        prompt="input",
        asked={"model": "tiny", "max_output_tokens": 7, "stream": True},
        pieces=[
            ("reasoning", 32, "**Greeting"),
            ("reasoning", 32, " back**"),
            ("content", 2, "Hi"),
            ("content", 2, " there!"),
            ("tool", 2, "get_weather"),
            ("tool", 2, '{"city":'),
            ("tool", 2, '"Paris"}'),
        ],
        source="usage_spread",
        kinds=[
            "role",
            "other",
            "reasoning",
            "other",
            "content",
            "other",
            "tool",
            "other",
            "finish",
        ],
        usage=(37, 74, 16),
        response_id="resp_67c9fdcecf488190bdd9a0409de3a1ec",
    ),
    Case(
        api="anthropic",
        listings={"/v1/models": {"data": [{"type": "model", "id": "claude-x"}], "has_more": False}},
        path="/v1/messages",
        prompt="messages[0].content",
        asked={"model": "claude-x", "max_tokens": 7, "stream": True},
        pieces=[
            ("reasoning", 2, "The user is asking"),
            ("reasoning", 2, " for the weather."),
            ("content", 2, "I'll"),
            ("content", 2, " look – 天気"),
            ("tool", 2, "get_weather"),
            ("tool", 2, '{"location":'),
            ("tool", 2, ' "Florence"}'),
        ],
        source="usage_spread",
        kinds=[
            *("role", "other", "reasoning", "other", "content", "other", "tool", "other", "tool"),
            *("other", "finish", "done"),
        ],
        usage=(1523, 14, 1000),
        response_id="msg_01WBeG2NaYQ8w99747S3n8MZ",
        headers={"anthropic-version": "2023-06-01", "x-api-key": "a-secret-key"},
    ),
    Case(
        api="ollama",
        listings={"/api/tags": {"models": [{"name": "qwen3:0.6b", "size": 1}]}},
        path="/api/chat",
        prompt="messages[0].content",
        asked={"model": "qwen3:0.6b", "options": {"num_predict": 7}, "stream": True},
        pieces=[
            ("reasoning", 2, "Okay"),
            ("reasoning", 2, ","),
            ("content", 2, "That"),
            ("content", 2, "'s"),
            ("tool", 2, 'get_weather{"city": "Tokyo"}'),
        ],
        source="usage_spread",
        kinds=["reasoning", "content", "tool", "finish"],
        usage=(11, 10, None),
        content_type="application/x-ndjson",
        headers={"accept": "application/x-ndjson"},
    ),
    Case(
        api="ollama-generate",
        listings={"/api/tags": {"models": [{"name": "llama3.2:latest"}]}},
        path="/api/generate",
        prompt="prompt",
        asked={"model": "llama3.2", "options": {"num_predict": 7}},
        pieces=[("content", 1, "That"), ("content", 1, "'"), ("content", 1, "s")],
        source="usage_spread",
        kinds=["content", "finish"],
        usage=(26, 3, None),
        content_type="application/x-ndjson",
        options=("--model", "llama3.2"),
    ),
    Case(
        api="tgi",
        listings={"/info": {"model_id": "bigscience/bloom", "version": "3.3.4"}},
        path="/generate_stream",
        prompt="inputs",
        asked={"parameters": {"details": True, "max_new_tokens": 7}},
        pieces=[
            ("content", 1, "Deep"),
            ("content", 1, " learning"),
            ("content", 1, ""),
            ("content", 1, "✓"),
        ],
        source="token_ids",
        kinds=["content", "finish"],
        usage=(4, 5, None),
    ),
    Case(
        api="triton",
        listings={"/v2/models/vllm_model": {"name": "vllm_model", "platform": "vllm"}},
        path="/v2/models/vllm_model/generate_stream",
        prompt="text_input",
        asked={"max_tokens": 7, "stream": True},
        pieces=[("content", 1, " I"), ("content", 1, " am"), ("content", 1, " Triton")],
        source="chunks",
        kinds=["content", "other"],
        usage=(None, None, None),
        content_type="text/event-stream; charset=utf-8",
        options=("--model", "vllm_model"),
    ),
    Case(
        api="llamacpp",
        listings={"/v1/models": {"data": [{"id": "tiny.gguf", "owned_by": "llamacpp"}]}},
        path="/completion",
        prompt="prompt",
        asked={"n_predict": 7, "ignore_eos": True, "stream": True},
        pieces=[("content", 1, " Once"), ("content", 3, " 天"), ("content", 3, "気")],
        source="chunk_usage",
        kinds=["content", "finish"],
        usage=(5, 7, 2),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_documented_stream_is_asked_for_and_read_as_it_is(case: Case, tmp_path: Path) -> None:
    with replaying(Replay(sample(case.api), case.content_type, case.listings)) as server:
        stream = bench_one(
            server.url,
            tmp_path / "run.parquet",
            *("--api", case.api, *case.options),
            extra={"LEGATO_API_KEY": "a-secret-key"},
        )
    assert_asked(case, server.posted)
    assert_read(case, stream)


def assert_asked(case: Case, posted: Asked) -> None:
    assert posted.path == case.path
    assert case.asked.items() <= posted.document.items()
    prompt = find(posted.document, compile_path(case.prompt))
    assert len(prompt.split()) == 4  # as many words as tokens were asked for
    assert case.headers.items() <= posted.headers.items()
    assert ("authorization" in posted.headers) == (case.api != "anthropic")


def assert_read(case: Case, stream: Stream) -> None:
    assert (stream.status, stream.error) == ("ok", None)
    assert stream.api == case.api
    assert pieces(stream) == case.pieces
    assert stream.token_source == case.source
    assert collapsed([KINDS[kind] for kind in stream.kind]) == case.kinds
    assert (stream.prompt_tokens, stream.output_tokens, stream.cached_tokens) == case.usage
    assert stream.response_id == case.response_id
    held = {KINDS.index(name) for name in ("content", "reasoning", "tool")}
    for kind, tokens in zip(stream.kind, stream.tokens, strict=True):
        assert kind in held or tokens == 0


def collapsed(names: list[str]) -> list[str]:
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
