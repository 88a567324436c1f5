"""Tokens per chunk come from the best source a stream offers, and the source is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from legato.apis import Chunk
from legato.errors import UsageError
from legato.recording import CONTENT, DONE, FINISH, OTHER, REASONING, ROLE, TOOL, USAGE
from legato.wire.tokens import Counts, count, load_tokenizer


def content(
    text: str = "x",
    total: int | None = None,
    ids: int | None = None,
    logprobs: int | None = None,
    kind: int = CONTENT,
) -> Chunk:
    return Chunk(kind, text=text, output_tokens=total, token_ids=ids, logprobs=logprobs)


def finish(reason: str = "stop", total: int | None = None) -> Chunk:
    return Chunk(FINISH, finish_reason=reason, output_tokens=total)


def words() -> Tokenizer:
    """Every word, with the space before it, is one token."""
    names = [" one", " two", " three", "one", "[unknown]"]
    model = models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="[unknown]")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_next")
    return tokenizer


def as_bytes() -> Tokenizer:
    """Every byte is one token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def test_running_usage_in_every_chunk_comes_first() -> None:
    chunks = [content(total=1, ids=9, logprobs=9), content(total=4, ids=9, logprobs=9)]
    assert count(chunks, words()).tokens == [1, 3]
    assert count(chunks).source == "chunk_usage"


def test_tokens_of_an_empty_chunk_count_with_the_text_that_completes_them() -> None:
    empty = Chunk(OTHER, output_tokens=2)
    chunks = [Chunk(ROLE, output_tokens=0), content(total=1), empty, content("é", total=3)]
    assert count(chunks) == Counts([0, 1, 0, 2], "chunk_usage")


def test_a_total_that_falls_or_stays_is_no_running_usage() -> None:
    assert count([content(total=5), content(total=3)]) == Counts([1, 2], "usage_spread")
    assert count([content(total=5)] * 3) == Counts([1, 2, 2], "usage_spread")


def test_a_usage_of_nothing_does_not_erase_what_came() -> None:
    assert count([content(total=0)] * 3) == Counts([1, 1, 1], "chunks")
    assert count([content(), content(), finish("stop", 0)]) == Counts([1, 1, 0], "chunks")
    zeros_then_total = [content(total=0), content(total=0), finish("length", 4)]
    assert count(zeros_then_total) == Counts([2, 2, 0], "usage_spread")


def test_usage_on_the_only_chunk_is_the_final_figure() -> None:
    assert count([content(total=7)]) == Counts([7], "usage_spread")


def test_usage_missing_on_one_chunk_is_no_running_usage() -> None:
    assert count([content(total=1), content(), content(total=3)]).source == "usage_spread"


def test_token_ids_come_next_and_may_be_none() -> None:
    assert count([content(ids=2, logprobs=9), content(ids=0)]) == Counts([2, 0], "token_ids")


def test_then_the_number_of_log_probabilities() -> None:
    assert count([content(logprobs=2), content(logprobs=1)]) == Counts([2, 1], "logprobs")


def test_log_probabilities_missing_on_one_chunk_are_not_used() -> None:
    assert count([content(logprobs=2), content()]).source == "chunks"


def test_then_a_tokenizer_which_encodes_the_whole_answer() -> None:
    chunks = [Chunk(ROLE), content(" o"), content("ne two"), content(" three"), finish(total=9)]
    counted = count(chunks, words())
    assert counted.source == "tokenizer"
    assert counted.tokens == [0, 0, 2, 1, 0]
    assert counted.text_tokens == 3
    assert counted.retokens == [0, 1, 2, 1, 0]


def test_a_token_belongs_to_the_chunk_with_its_last_character() -> None:
    assert count([content(" on"), content("e"), content(" two")], words()).tokens == [0, 1, 1]


@settings(deadline=None)
@given(st.lists(st.text(max_size=6), min_size=1, max_size=6))
def test_a_byte_tokenizer_finds_every_byte_in_its_chunk(texts: list[str]) -> None:
    counted = count([content(text) for text in texts], as_bytes())
    assert counted.tokens == [len(text.encode()) for text in texts]
    assert counted.text_tokens == sum(counted.tokens)


def test_then_the_final_usage_spread_over_the_chunks() -> None:
    chunks = [content() for _ in range(4)]
    assert count([*chunks, finish("length", 10)]) == Counts([2, 3, 2, 3, 0], "usage_spread")


def test_the_end_token_that_no_chunk_shows_is_left_out_where_it_explains_the_difference() -> None:
    chunks = [content() for _ in range(4)]
    assert count([*chunks, finish("stop", 5)]).tokens == [1, 1, 1, 1, 0]
    assert sum(count([*chunks, finish("length", 5)]).tokens) == 5
    assert sum(count([*chunks, finish("stop", 6)]).tokens) == 6


def test_where_tokens_are_fewer_than_chunks_the_first_chunk_holds_the_first_token() -> None:
    assert count([*[content() for _ in range(5)], finish("length", 2)]).tokens == [1, 0, 1, 0, 0, 0]


@settings(deadline=None)
@given(st.integers(1, 50), st.integers(1, 5000), st.sampled_from(["stop", "length"]))
def test_spread_tokens_sum_to_the_usage_and_differ_by_one_at_most(
    parts: int, total: int, reason: str
) -> None:
    tokens = count([*[content() for _ in range(parts)], finish(reason, total)]).tokens[:-1]
    end_token = reason == "stop" and total == parts + 1
    assert sum(tokens) == total - end_token
    assert max(tokens) - min(tokens) <= 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=30))
def test_running_usage_gives_back_every_step_of_the_total(steps: list[int]) -> None:
    totals = [sum(steps[: i + 1]) for i in range(len(steps))]
    assume(totals[-1] > totals[0])
    assert count([content(total=total) for total in totals]).tokens == steps


def test_with_nothing_to_go_by_a_chunk_is_a_token() -> None:
    assert count([content(), content()]) == Counts([1, 1], "chunks")


def test_reasoning_and_tool_chunks_hold_tokens_and_no_other_kind_does() -> None:
    kinds = [ROLE, REASONING, CONTENT, TOOL, FINISH, USAGE, DONE, OTHER]
    assert count([Chunk(kind, text="x") for kind in kinds]).tokens == [0, 1, 1, 1, 0, 0, 0, 0]


def test_a_stream_without_any_content_has_no_tokens() -> None:
    assert count([Chunk(ROLE), finish(total=3)]).tokens == [0, 0]
    assert count([]).tokens == []
    assert count([], words()).tokens == []


def test_a_tokenizer_is_read_from_its_file_or_its_folder(tmp_path: Path) -> None:
    words().save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        tokenizer = load_tokenizer(str(path))
        assert len(tokenizer.encode(" one two", add_special_tokens=False).ids) == 2


def test_a_tokenizer_that_is_missing_or_unreadable_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no tokenizer at"):
        load_tokenizer(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"no": "tokenizer"}))
    with pytest.raises(UsageError, match="is not a readable tokenizer"):
        load_tokenizer(str(tmp_path))
