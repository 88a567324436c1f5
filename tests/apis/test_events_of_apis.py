"""Single events of the APIs that are not OpenAI's chat: what their samples do not show."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato import apis
from legato.recording import (
    CONTENT,
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    HAS_USAGE,
    KINDS,
    OTHER,
    ROLE,
    TOOL,
)
from legato.wire.tokens import count


def decode(api: str, event: dict[str, Any]) -> apis.Chunk:
    return apis.named(api).decode(json.dumps(event).encode())


# --- OpenAI responses -------------------------------------------------------------------------


def test_a_response_cut_at_its_length_ends_with_that_reason() -> None:
    response = {
        "id": "resp_1",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "usage": {"input_tokens": 3, "output_tokens": 7},
    }
    chunk = decode("responses", {"type": "response.incomplete", "response": response})
    assert (chunk.kind, chunk.flags) == (FINISH, HAS_FINISH | HAS_USAGE)
    assert (chunk.finish_reason, chunk.terminal) == ("max_output_tokens", True)
    assert (chunk.prompt_tokens, chunk.output_tokens) == (3, 7)


def test_a_failed_response_is_an_error() -> None:
    response = {"status": "failed", "error": {"code": "server_error", "message": "no model"}}
    chunk = decode("responses", {"type": "response.failed", "response": response})
    assert chunk.error == "no model"


def test_log_probabilities_of_a_response_count_its_tokens() -> None:
    logprobs: list[dict[str, Any]] = [
        {"token": t, "logprob": -0.1, "top_logprobs": []} for t in ("Hi", "!")
    ]
    event = {"type": "response.output_text.delta", "delta": "Hi!", "logprobs": logprobs}
    assert decode("responses", event).logprobs == 2


def test_a_refusal_is_an_answer() -> None:
    chunk = decode("responses", {"type": "response.refusal.delta", "delta": "I will"})
    assert (chunk.kind, chunk.text) == (CONTENT, "I will")


def test_reasoning_that_stays_hidden_is_in_no_chunk() -> None:
    usage = {"output_tokens": 104, "output_tokens_details": {"reasoning_tokens": 100}}
    chunks = [
        decode("responses", {"type": "response.output_text.delta", "delta": "Hi"}),
        decode("responses", {"type": "response.output_text.delta", "delta": "!"}),
        decode("responses", {"type": "response.completed", "response": {"usage": usage}}),
    ]
    assert count(chunks).tokens == [2, 2, 0]


# --- Anthropic --------------------------------------------------------------------------------


def test_the_placeholder_of_message_start_is_no_count_of_output() -> None:
    message = {"id": "msg_1", "usage": {"input_tokens": 25, "output_tokens": 1}}
    chunk = decode("anthropic", {"type": "message_start", "message": message})
    assert (chunk.kind, chunk.flags) == (ROLE, EMPTY | HAS_USAGE)
    assert (chunk.prompt_tokens, chunk.output_tokens) == (25, None)


@pytest.mark.parametrize(
    ("reason", "taken"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "max_tokens")],
)
def test_an_answer_that_ended_by_itself_has_stopped(reason: str, taken: str) -> None:
    event = {
        "type": "message_delta",
        "delta": {"stop_reason": reason},
        "usage": {"output_tokens": 4},
    }
    assert decode("anthropic", event).finish_reason == taken


@pytest.mark.parametrize(
    "event",
    [
        {"type": "ping"},
        {"type": "content_block_stop", "index": 0},
        {"type": "an_event_of_next_year", "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_start", "content_block": {"type": "redacted_thinking"}},
    ],
)
def test_events_without_output_hold_no_tokens(event: dict[str, Any]) -> None:
    chunk = decode("anthropic", event)
    assert (chunk.kind, chunk.flags, chunk.text, chunk.error) == (OTHER, EMPTY, "", None)


def test_a_signature_is_not_the_models_output() -> None:
    delta = {"type": "signature_delta", "signature": "EqQBCgIYAhIM"}
    chunk = decode("anthropic", {"type": "content_block_delta", "delta": delta})
    assert (chunk.kind, chunk.text) == (OTHER, "")


def test_anthropic_asks_for_some_length_since_the_field_is_required() -> None:
    assert apis.named("anthropic").body("m", "p", None, {})["max_tokens"] == 4096


# --- Ollama -----------------------------------------------------------------------------------


def test_the_last_line_of_ollama_may_hold_text() -> None:
    event = {"response": "!", "done": True, "done_reason": "stop", "eval_count": 7}
    chunk = decode("ollama-generate", event)
    assert (chunk.kind, chunk.text, chunk.output_tokens) == (CONTENT, "!", 7)
    assert chunk.flags == HAS_CHOICES | HAS_FINISH | HAS_USAGE
    assert chunk.terminal


def test_a_model_of_ollama_goes_by_its_name_without_latest() -> None:
    listing = apis.named("ollama").listing
    assert listing is not None
    names = listing.models({"models": [{"name": "llama3.2:latest"}, {"name": "qwen3:0.6b"}]})
    assert list(names) == ["llama3.2:latest", "qwen3:0.6b", "llama3.2"]


# --- llama.cpp and TGI ------------------------------------------------------------------------


def test_older_llama_servers_say_the_count_at_the_end_only() -> None:
    counted = {"tokens_predicted": 2, "tokens_evaluated": 3}
    chunks = [
        decode("llamacpp", {"content": "a", "id_slot": 0, "multimodal": False, "stop": False}),
        decode("llamacpp", {"content": "b", "id_slot": 0, "multimodal": False, "stop": False}),
        decode("llamacpp", {"content": "", "stop": True, "stopped_limit": True} | counted),
    ]
    assert chunks[-1].finish_reason == "length"
    counts = count(chunks)
    assert (counts.tokens, counts.source) == ([1, 1, 0], "usage_spread")


def test_progress_of_the_prompt_is_no_output() -> None:
    progress = {"content": "", "stop": False, "prompt_progress": {"total": 9, "processed": 4}}
    chunk = decode("llamacpp", progress)
    assert (chunk.kind, chunk.flags) == (OTHER, HAS_CHOICES | EMPTY)


def test_the_last_token_of_tgi_may_be_one_of_the_answer() -> None:
    details = {"finish_reason": "length", "generated_tokens": 2, "input_length": 1}
    token = {"id": 5, "text": " b", "logprob": -0.1, "special": False}
    event = {"index": 2, "token": token, "generated_text": "a b", "details": details}
    chunk = decode("tgi", event)
    assert (chunk.kind, chunk.text, chunk.finish_reason) == (CONTENT, " b", "length")
    assert chunk.flags == HAS_CHOICES | HAS_FINISH | HAS_USAGE


# --- Triton -----------------------------------------------------------------------------------


def test_tritons_vllm_backend_may_count_the_tokens_of_each_event() -> None:
    first = {"text_output": " a b", "num_output_tokens": 2, "finish_reason": "None"}
    last = {"text_output": " c", "num_output_tokens": 1, "finish_reason": "length"}
    chunks = [decode("triton", first), decode("triton", last)]
    assert (count(chunks).tokens, count(chunks).source) == ([2, 1], "token_ids")
    assert [chunk.finish_reason for chunk in chunks] == [None, "length"]


# --- all --------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        *("type", "delta", "text", "thinking", "partial_json", "content_block", "message", "usage"),
        *("response", "item", "name", "done", "error", "token", "special", "details", "content"),
        *("output_tokens", "tokens_predicted", "text_output", "generated_text", "stop", "choices"),
    ]
)
TYPES = st.sampled_from(
    [
        *("content_block_delta", "content_block_start", "message_start", "message_delta", "error"),
        *("response.output_text.delta", "response.completed", "response.output_item.added"),
        *("text_delta", "thinking_delta", "input_json_delta", "function_call"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("name", apis.APIS)
@settings(max_examples=50)
@given(event=JSON)
def test_no_json_does_worse_than_not_being_a_chunk(name: str, event: Any) -> None:
    # The errors that decode takes for "not a chunk of this API".
    with contextlib.suppress(ValueError, AttributeError, TypeError, KeyError):
        chunk = apis.named(name).decode(json.dumps(event).encode())
        assert 0 <= chunk.kind < len(KINDS)
        assert isinstance(chunk.text, str)
        assert chunk.text or chunk.kind not in (CONTENT, TOOL) or chunk.flags & EMPTY
        assert chunk.output_tokens is None or chunk.output_tokens >= 0
