"""Events as servers write them, byte for byte, and what each holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato import apis
from legato.apis import Chunk
from legato.apis.openai import decode_chat, decode_completions
from legato.errors import UsageError
from legato.recording import (
    CONTENT,
    DONE,
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    HAS_USAGE,
    OTHER,
    REASONING,
    ROLE,
    TOOL,
    USAGE,
)

OPENAI = {
    "role": b'{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1,"model":"gpt-4o-mini"'
    b',"service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":'
    b'"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null'
    b',"obfuscation":"x"}',
    "content": b'{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1,"model":"gpt-4o-'
    b'mini","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null'
    b'}],"usage":null}',
    "finish": b'{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1,"model":"gpt-4o-'
    b'mini","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null'
    b"}",
    "usage": b'{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1,"model":"gpt-4o-'
    b'mini","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,'
    b'"prompt_tokens_details":{"cached_tokens":16,"audio_tokens":0}}}',
    "tool": b'{"id":"chatcmpl-9","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1"'
    b',"type":"function","function":{"name":"play","arguments":"{\\"a\\":"}}]},"finish_reason":'
    b"null}]}",
    "logprobs": b'{"id":"chatcmpl-9","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":{'
    b'"content":[{"token":"H","logprob":-0.1,"bytes":[72],"top_logprobs":[]},{"token":"i",'
    b'"logprob":-0.1,"bytes":[105],"top_logprobs":[]}],"refusal":null},"finish_reason":null}]}',
}


def test_an_openai_role_chunk_is_an_empty_role() -> None:
    chunk = decode_chat(OPENAI["role"])
    assert (chunk.kind, chunk.flags, chunk.text) == (ROLE, EMPTY | HAS_CHOICES, "")
    assert (chunk.response_id, chunk.model) == ("chatcmpl-9", "gpt-4o-mini")
    assert chunk.output_tokens is None


def test_an_openai_content_chunk_holds_its_text() -> None:
    chunk = decode_chat(OPENAI["content"])
    assert (chunk.kind, chunk.flags, chunk.text) == (CONTENT, HAS_CHOICES, "Hello")
    assert chunk.logprobs is None


def test_an_openai_finish_chunk_names_its_reason() -> None:
    chunk = decode_chat(OPENAI["finish"])
    assert (chunk.kind, chunk.flags) == (FINISH, HAS_CHOICES | HAS_FINISH)
    assert chunk.finish_reason == "stop"


def test_an_openai_usage_chunk_has_the_final_figures() -> None:
    chunk = decode_chat(OPENAI["usage"])
    assert (chunk.kind, chunk.flags) == (USAGE, HAS_USAGE)
    assert (chunk.prompt_tokens, chunk.output_tokens, chunk.cached_tokens) == (19, 10, 16)


def test_a_tool_call_is_a_kind_of_its_own_with_its_name_and_arguments() -> None:
    chunk = decode_chat(OPENAI["tool"])
    assert (chunk.kind, chunk.text) == (TOOL, 'play{"a":')


def test_log_probabilities_are_counted() -> None:
    assert decode_chat(OPENAI["logprobs"]).logprobs == 2


@pytest.mark.parametrize("decode", [decode_chat, decode_completions])
def test_the_end_marker_is_terminal(decode: Any) -> None:
    assert decode(b"[DONE]") == Chunk(DONE, terminal=True)


def test_a_vllm_chunk_with_running_usage_and_ids() -> None:
    chunk = decode_chat(
        b'{"id":"chatcmpl-v","object":"chat.completion.chunk","created":1,"model":"m","choices":['
        b'{"index":0,"delta":{"content":" a b"},"logprobs":null,"finish_reason":null,'
        b'"token_ids":[5,6]}],"usage":{"prompt_tokens":4,"total_tokens":7,"completion_tokens":3}}'
    )
    assert (chunk.kind, chunk.flags) == (CONTENT, HAS_CHOICES | HAS_USAGE)
    assert (chunk.output_tokens, chunk.token_ids) == (3, 2)


def test_a_vllm_chunk_may_hold_the_last_text_and_the_finish_reason() -> None:
    chunk = decode_chat(
        b'{"id":"v","choices":[{"index":0,"delta":{"content":"."},"logprobs":null,'
        b'"finish_reason":"length","stop_reason":null}]}'
    )
    assert (chunk.kind, chunk.flags) == (CONTENT, HAS_CHOICES | HAS_FINISH)


@pytest.mark.parametrize("field", [b"reasoning_content", b"reasoning"])
def test_a_vllm_reasoning_delta_is_a_kind_of_its_own(field: bytes) -> None:
    chunk = decode_chat(
        b'{"id":"v","choices":[{"index":0,"delta":{"%b":"Hm"},"finish_reason":null}]}' % field
    )
    assert (chunk.kind, chunk.flags, chunk.text) == (REASONING, HAS_CHOICES, "Hm")


def test_an_sglang_chunk_spells_out_its_nulls() -> None:
    chunk = decode_chat(
        b'{"id":"5d","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0'
        b',"delta":{"role":null,"content":"","reasoning_content":"Okay","tool_calls":null},'
        b'"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}'
    )
    assert (chunk.kind, chunk.flags, chunk.text) == (REASONING, HAS_CHOICES, "Okay")


def test_an_sglang_finish_chunk_with_an_empty_text_holds_no_token() -> None:
    chunk = decode_chat(
        b'{"id":"5d","choices":[{"index":0,"delta":{"role":null,"content":"","reasoning_content":'
        b'null,"tool_calls":null},"finish_reason":"stop","matched_stop":151645}],"usage":null}'
    )
    assert (chunk.kind, chunk.flags) == (FINISH, HAS_CHOICES | HAS_FINISH)


def test_a_delta_that_repeats_the_role_beside_its_text_is_content() -> None:
    chunk = decode_chat(b'{"choices":[{"delta":{"role":"assistant","content":"Hi"}}]}')
    assert (chunk.kind, chunk.flags) == (CONTENT, HAS_CHOICES)


def test_an_azure_filter_chunk_without_choices_is_something_else() -> None:
    chunk = decode_chat(b'{"choices":[],"id":"","model":"","prompt_filter_results":[{}]}')
    assert (chunk.kind, chunk.flags) == (OTHER, 0)


def test_a_chunk_of_a_half_decoded_character_is_empty() -> None:
    chunk = decode_chat(b'{"id":"v","choices":[{"index":0,"delta":{"content":""}}]}')
    assert (chunk.kind, chunk.flags) == (OTHER, HAS_CHOICES | EMPTY)


def test_text_completions_hold_text_ids_and_log_probabilities() -> None:
    chunk = decode_completions(
        b'{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,'
        b'"text":" a b","logprobs":{"tokens":[" a"," b"],"token_logprobs":[-1,-1]},'
        b'"finish_reason":null,"token_ids":[1,2]}],"usage":null}'
    )
    assert (chunk.kind, chunk.flags, chunk.text) == (CONTENT, HAS_CHOICES, " a b")
    assert (chunk.logprobs, chunk.token_ids) == (2, 2)


def test_text_completions_end_with_an_empty_text_and_a_reason() -> None:
    chunk = decode_completions(b'{"choices":[{"index":0,"text":"","finish_reason":"length"}]}')
    assert (chunk.kind, chunk.flags) == (FINISH, HAS_CHOICES | HAS_FINISH)
    empty = decode_completions(b'{"choices":[{"index":0,"text":"","finish_reason":null}]}')
    assert (empty.kind, empty.flags) == (OTHER, HAS_CHOICES | EMPTY)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            b'{"error":{"message":"out of memory","type":"server_error","code":500}}',
            "out of memory",
        ),
        (b'{"error":"out of memory"}', "out of memory"),
        (
            b'{"object":"error","message":"too long","type":"BadRequestError","code":400}',
            "too long",
        ),
        (b'{"error":{"message":null,"code":500}}', "an error without a message"),
    ],
)
def test_an_error_inside_the_stream_is_told(event: bytes, message: str) -> None:
    assert decode_chat(event).error == message
    assert decode_completions(event).error == message


def test_a_text_with_half_a_surrogate_pair_can_be_stored() -> None:
    chunk = decode_chat(b'{"id":"\\ud800","choices":[{"delta":{"content":"a\\ud83d"}}]}')
    assert chunk.text.encode() == b"a?"
    assert (chunk.response_id or "").encode() == b"?"


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff",
        b'{"id":7}',
        b'{"choices":[{"text":7,"delta":{"content":7}}]}',
        b'{"choices":[{"text":[1],"delta":{"reasoning":[1]}}]}',
        b'{"choices":[{"text":{"a":1},"delta":{"content":{"a":1}}}]}',
        b'{"usage":{"completion_tokens":"7"}}',
        b'{"usage":{"completion_tokens":-1}}',
        b'{"usage":{"completion_tokens":true}}',
        b'{"usage":{"prompt_tokens":4294967296}}',
        b'{"usage":{"prompt_tokens_details":{"cached_tokens":1.5}}}',
    ],
)
def test_what_is_no_event_of_the_api_is_a_value_error(event: bytes) -> None:
    for decode in (decode_chat, decode_completions):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is not part of the contract
            decode(event)


FIELDS = ["id", "choices", "delta", "content", "text", "usage", "completion_tokens", "error"]
FIELDS += ["message", "tool_calls", "function", "name", "logprobs", "token_ids", "tokens"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(json_values, st.sampled_from([decode_chat, decode_completions]))
def test_any_json_is_decoded_or_refused_and_what_is_decoded_can_be_stored(
    document: Any, decode: Any
) -> None:
    try:
        chunk = decode(json.dumps(document).encode())
    except (ValueError, AttributeError, TypeError, KeyError):
        return
    assert isinstance(chunk.text, str)
    assert chunk.text.encode() is not None
    assert chunk.response_id is None or isinstance(chunk.response_id, str)
    assert chunk.output_tokens is None or 0 <= chunk.output_tokens < 2**31


def test_a_chat_request_asks_for_a_stream_with_usage() -> None:
    body = apis.named("chat").body("m", "Hello", 7, {"temperature": 0})
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 7,
        "temperature": 0,
    }


def test_what_the_user_adds_comes_last_and_a_null_removes_a_field() -> None:
    extra = {"stream_options": None, "max_tokens": None, "max_completion_tokens": 9, "model": "n"}
    body = apis.named("completions").body("m", "Hello", 7, extra)
    assert body == {"model": "n", "prompt": "Hello", "stream": True, "max_completion_tokens": 9}


def test_without_a_number_of_output_tokens_none_is_asked_for() -> None:
    assert "max_tokens" not in apis.named("chat").body("m", "Hello", None, {})


def test_an_api_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"'smoke'.*chat, completions"):
        apis.named("smoke")


@pytest.mark.parametrize(
    ("delta", "kind", "text"),
    [
        ({"refusal": "I cannot"}, CONTENT, "I cannot"),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            CONTENT,
            "ab",
        ),
        ({"reasoning_content": "so ", "content": "yes"}, CONTENT, "so yes"),
        ({"function_call": {"name": "f", "arguments": "{"}}, TOOL, "f{"),
        ({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}, OTHER, ""),
    ],
)
def test_deltas_that_real_servers_send(delta: dict[str, Any], kind: int, text: str) -> None:
    chunk = decode_chat(json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode())
    assert (chunk.kind, chunk.text) == (kind, text)
    assert bool(chunk.flags & EMPTY) == (not text)
