from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from legato.traffic.book import OUTPUT_MARK, PROMPT_MARK, SALT_MARK, Book, Row

WORDS = ("time", "year", "people", "way", "day", "man", "thing")
TEMPLATE = json.dumps({"prompt": PROMPT_MARK, "max_tokens": OUTPUT_MARK, "stream": True})
HEAD = "POST /v1/completions HTTP/1.1\r\nHost: h\r\n"


def book(*rows: Row, salt_seed: int | None = 1, prefix_tokens: int = 0, seed: int = 0) -> Book:
    return Book(
        HEAD,
        TEMPLATE,
        WORDS,
        rows,
        prefix_tokens=prefix_tokens,
        salt_seed=salt_seed,
        seed=seed,
    )


def body(request: bytes) -> dict[str, object]:
    head, _, text = request.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(text)}".encode() in head
    found: dict[str, object] = json.loads(text)
    return found


@settings(deadline=None)
@given(st.integers(1, 200_000), st.integers(0, 300), st.integers(0, 1000), st.booleans())
def test_a_prompt_has_as_many_words_as_its_row_asks(
    tokens: int, prefix: int, number: int, salted: bool
) -> None:
    made = book(Row(tokens, 7, 0), salt_seed=3 if salted else None, prefix_tokens=prefix)
    assert len(made.prompt(number).split(" ")) == tokens


def test_rows_are_used_in_turn_with_their_lengths() -> None:
    made = book(Row(10, 5), Row(20, 6))
    bodies = [body(made.request(number)) for number in range(3)]
    assert [b["max_tokens"] for b in bodies] == [5, 6, 5]
    assert [len(str(b["prompt"]).split()) for b in bodies] == [10, 20, 10]


def test_salted_prompts_differ_from_their_first_words_and_unsalted_repeat() -> None:
    salted = book(Row(50, 5))
    starts = {salted.prompt(number).split()[:4].__str__() for number in range(40)}
    assert len(starts) > 35
    plain = book(Row(50, 5), salt_seed=None)
    assert plain.prompt(0) == plain.prompt(1)


def test_a_group_shares_its_prefix_and_nothing_after_it() -> None:
    made = book(Row(30, 5, 0), Row(30, 5, 1), Row(30, 5, 0), prefix_tokens=10)
    prompts = [made.prompt(number).split() for number in range(3)]
    assert prompts[0][:10] == prompts[2][:10] != prompts[1][:10]
    assert prompts[0][10:] != prompts[2][10:]


def test_the_same_seed_gives_the_same_words() -> None:
    one, again, other = (book(Row(50, 5), salt_seed=None, seed=seed) for seed in (1, 1, 2))
    assert one.prompt(0) == again.prompt(0) != other.prompt(0)


def test_whole_bodies_go_out_as_they_are_but_for_the_salt() -> None:
    text = json.dumps({"messages": [{"role": "user", "content": f"{SALT_MARK}Grüße"}], "n": 1})
    plain = Book(HEAD, bodies=(text,), salt_seed=None)
    assert body(plain.request(5)) == {
        "messages": [{"role": "user", "content": "Grüße"}],
        "n": 1,
    }
    salted = Book(HEAD, bodies=(text,), salt_seed=9)
    first, second = salted.request(0), salted.request(1)
    assert first != second
    assert b"Gr\\u00fc\\u00dfe" in first
