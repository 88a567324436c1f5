"""The JSON of events and answers, as vLLM and OpenAI write it.

Pure. Built once a stream is the part that all its events share: a token's event is a join.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from legato.metronome.ask import MODEL, Ask
from legato.metronome.truth import CONTENT, REASONING, TOOL, response_id

# Distinct words of four letters and a space: an answer has the length of real text.
WORDS = tuple(
    f" {a}{b}{c}{d}".encode()
    for a, b, c, d in itertools.product("bdfgklmnprstvz", "aeiou", "dlmnrst", "aeio")
)


class Voice:
    """Says the events of one answer."""

    __slots__ = ("_ask", "_common", "_first_tool", "_start", "response_id")

    def __init__(self, ask: Ask, run: str, number: int, created_s: int) -> None:
        self._ask = ask
        self._start = number * 31
        self.response_id = response_id(run, ask.api, number)
        kind = "chat.completion.chunk" if ask.api == "chat" else "text_completion"
        self._common = (
            f'{{"id":"{self.response_id}","object":"{kind}","created":{created_s},'
            f'"model":"{MODEL}","choices":['
        ).encode()
        self._first_tool = ask.tokens - min(ask.pattern.tool_tokens, ask.tokens)

    def one_token(self) -> Callable[[int], bytes]:
        """A function from a position to the event of its content token: what `tokens` gives where
        neither ids nor log-probabilities are asked for, at a fifth of the cost."""
        api, prompt, start = self._ask.api, self._ask.prompt_tokens, self._start
        opening = self._common + b'{"index":0,' + _DELTA_OPEN[api][CONTENT]
        closing = _DELTA_CLOSE[api][CONTENT] + b',"logprobs":null,"finish_reason":null}]'
        if not self._ask.continuous_usage:
            end = closing + b"}"
            return lambda at: opening + WORDS[(start + at) % len(WORDS)] + end
        counted = closing + b',"usage":' + _USAGE + b"}"
        return lambda at: (
            opening + WORDS[(start + at) % len(WORDS)] + counted % (prompt, prompt + at + 1, at + 1)
        )

    def tokens(
        self, kind: int, first: int, count: int, *, finish: bool = False, padding: int = 0
    ) -> bytes:
        """The event of `count` tokens of one kind from position `first` on."""
        api = self._ask.api
        text = self._text(first, count)
        if kind == TOOL:
            delta = self._tool_delta(first, count, text)
        else:
            delta = _DELTA_OPEN[api][kind] + text + _DELTA_CLOSE[api][kind]
        reason = b'"%b"' % self.finish_reason.encode() if finish else b"null"
        extra = b',"token_ids":' + _dump(self._ids(first, count)) if self._ask.token_ids else b""
        return b"".join(
            (
                self._common,
                b'{"index":0,',
                delta,
                b',"logprobs":',
                self._logprobs(first, count),
                b',"finish_reason":',
                reason,
                extra,
                b"}]",
                self._running_usage(first + count),
                b',"padding":"%b"' % (b"x" * padding) if padding else b"",
                b"}",
            )
        )

    def role(self) -> bytes:
        return (
            self._common
            + b'{"index":0,"delta":{"role":"assistant","content":""},'
            + b'"logprobs":null,"finish_reason":null}]'
            + self._running_usage(0)
            + b"}"
        )

    def finish(self) -> bytes:
        delta = b'"delta":{}' if self._ask.api == "chat" else b'"text":""'
        return (
            self._common
            + b'{"index":0,%b,"logprobs":null,"finish_reason":"%b"}]'
            % (delta, self.finish_reason.encode())
            + self._running_usage(self._ask.tokens)
            + b"}"
        )

    def usage(self) -> bytes:
        return self._common + b'],"usage":' + self._usage(self._ask.tokens) + b"}"

    def whole(self) -> bytes:
        """The answer to a request that asks for no stream."""
        ask = self._ask
        thought = min(ask.pattern.reasoning_tokens, self._first_tool)
        text = self._text(thought, self._first_tool - thought).decode()
        choice: dict[str, Any] = {"index": 0}
        if ask.api == "chat":
            message: dict[str, Any] = {"role": "assistant", "content": text}
            if thought:
                message["reasoning_content"] = self._text(0, thought).decode()
            if self._first_tool < ask.tokens:
                message["tool_calls"] = [self._tool_call()]
            choice["message"] = message
        else:
            choice["text"] = self._text(0, ask.tokens).decode()
        choice["logprobs"] = json.loads(self._logprobs(0, ask.tokens))
        choice["finish_reason"] = self.finish_reason
        if ask.token_ids:
            choice["token_ids"] = self._ids(0, ask.tokens)
        document = json.loads(self._common + b"]}")
        document["object"] = "chat.completion" if ask.api == "chat" else "text_completion"
        document["choices"] = [choice]
        if ask.pattern.usage:
            document["usage"] = json.loads(self._usage(ask.tokens))
        return _dump(document)

    @property
    def finish_reason(self) -> str:
        calls = self._ask.api == "chat" and self._first_tool < self._ask.tokens
        return "tool_calls" if calls else self._ask.finish_reason

    def _text(self, first: int, count: int) -> bytes:
        start = self._start + first
        return b"".join([WORDS[at % len(WORDS)] for at in range(start, start + count)])

    def _ids(self, first: int, count: int) -> list[int]:
        start = self._start + first
        return [at % len(WORDS) for at in range(start, start + count)]

    def _tool_delta(self, first: int, count: int, text: bytes) -> bytes:
        if self._ask.api == "text":
            return b'"text":"' + text + b'"'
        # The pieces of all deltas together are a JSON document: {"text":" …"}
        opening = first == self._first_tool
        arguments = (b'{\\"text\\":\\"' if opening else b"") + text
        if first + count == self._ask.tokens:
            arguments += b'\\"}'
        names = b'"id":"call_%b","type":"function",' % self.response_id.encode() if opening else b""
        function = b'"name":"play",' if opening else b""
        return b'"delta":{"tool_calls":[{"index":0,%b"function":{%b"arguments":"%b"}}]}' % (
            names,
            function,
            arguments,
        )

    def _tool_call(self) -> dict[str, Any]:
        text = self._text(self._first_tool, self._ask.tokens - self._first_tool).decode()
        arguments = json.dumps({"text": text}, separators=(",", ":"))
        return {
            "id": f"call_{self.response_id}",
            "type": "function",
            "function": {"name": "play", "arguments": arguments},
        }

    def _running_usage(self, tokens: int) -> bytes:
        return b',"usage":' + self._usage(tokens) if self._ask.continuous_usage else b""

    def _usage(self, tokens: int) -> bytes:
        prompt = self._ask.prompt_tokens
        return _USAGE % (prompt, prompt + tokens, tokens)

    def _logprobs(self, first: int, count: int) -> bytes:
        if not self._ask.logprobs:
            return b"null"
        words = [WORDS[at].decode() for at in self._ids(first, count)]
        if self._ask.api == "chat":
            return _dump(
                {
                    "content": [
                        {"token": w, "logprob": -0.1, "bytes": None, "top_logprobs": []}
                        for w in words
                    ]
                }
            )
        return _dump(
            {
                "tokens": words,
                "token_logprobs": [-0.1] * count,
                "top_logprobs": [None] * count,
                "text_offset": [5 * at for at in range(first, first + count)],
            }
        )


_USAGE = b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}'
_DELTA_OPEN = {
    "chat": {CONTENT: b'"delta":{"content":"', REASONING: b'"delta":{"reasoning_content":"'},
    "text": {CONTENT: b'"text":"', REASONING: b'"text":"'},
}
_DELTA_CLOSE = {
    "chat": {CONTENT: b'"}', REASONING: b'"}'},
    "text": {CONTENT: b'"', REASONING: b'"'},
}


def _dump(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def error(status: int, message: str, code: str | None = None) -> bytes:
    """An error body as OpenAI's servers give it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    if status == 429:
        kind = "rate_limit_error"
    return _dump({"error": {"message": message, "type": kind, "param": None, "code": code}})


def model(created_s: int) -> bytes:
    return _dump(_model(created_s))


def models(created_s: int) -> bytes:
    return _dump({"object": "list", "data": [_model(created_s)]})


def _model(created_s: int) -> dict[str, Any]:
    return {"id": MODEL, "object": "model", "created": created_s, "owned_by": "legato"}
