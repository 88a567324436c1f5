"""From what the user wants asked to the requests that go out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from legato import apis
from legato.errors import UsageError
from legato.traffic.asking import Asking, plan
from legato.traffic.book import Book
from legato.traffic.lengths import fixed, parse
from legato.traffic.promptfile import Entry
from legato.traffic.traces import Arrival

HEAD = "POST / HTTP/1.1\r\n"


def planned(asking: Asking, api: str = "chat", **more: Any) -> Book:
    extra = more.pop("extra", {})
    return plan(asking, HEAD, apis.named(api), "m", extra, requests=100, **more).book


def body(book: Book, number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(book.request(number).partition(b"\r\n\r\n")[2])
    return found


def text(book: Book, number: int = 0) -> str:
    found: str = body(book, number)["messages"][0]["content"]
    return found


def test_one_length_goes_into_every_request() -> None:
    book = planned(Asking(fixed(30), fixed(7)))
    assert {len(text(book, number).split()) for number in range(5)} == {30}
    assert {body(book, number)["max_tokens"] for number in range(5)} == {7}


def test_lengths_are_drawn_by_seed_and_reach_the_body() -> None:
    asking = Asking(
        parse("--prompt-tokens", "uniform:10:50"), parse("--output-tokens", "uniform:1:9")
    )
    one, again = planned(asking), planned(asking)
    lengths = [
        (len(text(b, n).split()), body(b, n)["max_tokens"]) for b in (one, again) for n in range(50)
    ]
    assert lengths[:50] == lengths[50:]
    assert len(set(lengths)) > 20
    assert all(10 <= prompt <= 50 and 1 <= output <= 9 for prompt, output in lengths)


def test_a_trace_gives_each_request_its_own_lengths() -> None:
    trace = [Arrival(0.0, 12, 3), Arrival(0.5, 40, 9)]
    book = planned(Asking(), trace=trace)
    assert [len(text(book, n).split()) for n in range(2)] == [12, 40]
    assert [body(book, n)["max_tokens"] for n in range(2)] == [3, 9]


def test_a_group_shares_the_asked_share_of_its_prompts() -> None:
    book = planned(Asking(fixed(40), fixed(5), prefix_share=0.5, prefix_groups=2))
    starts = {" ".join(text(book, number).split()[:20]) for number in range(60)}
    assert len(starts) == 2
    assert len({text(book, number) for number in range(60)}) == 60


def test_every_api_gets_its_prompt_and_its_length() -> None:
    for name in apis.APIS:
        sent = json.dumps(body(planned(Asking(fixed(5), fixed(77), cache_friendly=True), api=name)))
        assert "prompt\\u0000" not in sent, name
        assert "77" in sent, name


def test_lines_of_a_file_are_used_in_turn_with_a_salt_each() -> None:
    asking = Asking(prompt_file="f", entries=(Entry("one"), Entry("two")))
    book = planned(asking)
    assert [text(book, number).split(" ")[1] for number in range(3)] == ["one", "two", "one"]
    assert text(book, 0) != text(book, 2)
    plain = planned(Asking(prompt_file="f", entries=(Entry("one"),), cache_friendly=True))
    assert text(plain) == "one"


def test_bodies_of_a_file_keep_their_fields_and_their_messages() -> None:
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    entry = Entry(None, {"messages": messages, "temperature": 0.3, "max_tokens": 4})
    sent = body(planned(Asking(prompt_file="f", entries=(entry,), cache_friendly=True)))
    assert sent["messages"] == messages
    assert (sent["temperature"], sent["max_tokens"], sent["stream"]) == (0.3, 4, True)
    salted = body(planned(Asking(prompt_file="f", entries=(entry,))))
    assert salted["messages"][0]["content"].endswith(" be brief")
    assert salted["messages"][1] == messages[1]


def test_chat_messages_are_refused_by_an_api_without_them() -> None:
    entry = Entry(None, {"messages": [{"role": "user", "content": "hi"}]})
    with pytest.raises(UsageError, match="--api completions"):
        planned(Asking(prompt_file="f", entries=(entry,)), api="completions")


def test_extra_fields_that_replace_the_prompt_are_refused() -> None:
    with pytest.raises(UsageError, match="--prompt-file"):
        planned(Asking(), extra={"messages": []})


def test_with_a_tokenizer_a_prompt_has_exactly_as_many_tokens() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    from legato.traffic.prompts import vocabulary

    words, _ = vocabulary(None)
    # Half of the words are whole tokens; the others fall apart into letters.
    known = {word: number for number, word in enumerate(words[::2])}
    letters = {chr(c): len(known) + c for c in range(97, 123)}
    model = tokenizers.models.BPE({**letters, **_merged(words[::2], letters)}, _merges(words[::2]))
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    found = plan(
        Asking(fixed(300), fixed(5)),
        HEAD,
        apis.named("chat"),
        "m",
        {},
        requests=3,
        tokenizer=tokenizer,
    )
    assert found.exact
    for number in range(3):
        encoded = tokenizer.encode(found.book.prompt(number), add_special_tokens=False)
        assert len(encoded.ids) == 300


def _merges(words: tuple[str, ...]) -> list[tuple[str, str]]:
    """Merges that build each word letter by letter."""
    merges: dict[tuple[str, str], None] = {}
    for word in words:
        for end in range(2, len(word) + 1):
            merges[(word[: end - 1], word[end - 1])] = None
    return list(merges)


def _merged(words: tuple[str, ...], letters: dict[str, int]) -> dict[str, int]:
    pieces = [a + b for a, b in _merges(words)]
    return {piece: max(letters.values()) + 1 + n for n, piece in enumerate(dict.fromkeys(pieces))}
