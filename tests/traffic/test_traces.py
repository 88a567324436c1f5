from __future__ import annotations

from pathlib import Path

import pytest

from legato.errors import UsageError
from legato.traffic.traces import Arrival, read

# As published: the first lines of each, with the columns and the notation of the original.
MOONCAKE = """\
{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}
{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 47, 2366]}
"""
AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
"""
BURST_GPT = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,0,417,API log
"""
PLAIN_CSV = "time_s,prompt_tokens,output_tokens\n0.5,10,20\n0.25,30,40\n"
PLAIN_JSONL = '{"time_s": 1, "prompt_tokens": 5, "output_tokens": 6}\n\n'


def test_mooncake_times_are_milliseconds(tmp_path: Path) -> None:
    first, second = _read(tmp_path, MOONCAKE)
    assert first == Arrival(0.0, 6955, 52)
    assert second.at_s == pytest.approx(3.053)
    assert second.prompt_tokens == 6472


def test_azure_times_have_seven_digits(tmp_path: Path) -> None:
    first, second = _read(tmp_path, AZURE)
    assert first == Arrival(0.0, 4808, 10)
    assert second.at_s == pytest.approx(0.052, abs=1e-6)


def test_burst_gpt_times_are_seconds_and_failed_requests_ask_for_one_token(tmp_path: Path) -> None:
    assert _read(tmp_path, BURST_GPT) == [
        Arrival(0.0, 472, 18),
        Arrival(40.0, 1087, 230),
        Arrival(113.0, 417, 1),
    ]


def test_a_plain_trace_is_put_in_order(tmp_path: Path) -> None:
    assert _read(tmp_path, PLAIN_CSV) == [Arrival(0.0, 30, 40), Arrival(0.25, 10, 20)]
    assert _read(tmp_path, PLAIN_JSONL) == [Arrival(0.0, 5, 6)]


def test_a_trace_can_be_played_faster_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(BURST_GPT)
    assert [a.at_s for a in read(str(path), speed=10.0, requests=2)] == [0.0, 4.0]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no request"),
        ("a,b\n1,2\n", "no layout"),
        ('{"timestamp": 1, "input_length": 2, "output_length": 3}\n{"x": 1}\n', "line 2"),
        ('{"timestamp": 1, "input_length": 2, "output_length": 3}\nnonsense\n', "line 2"),
        ("time_s,prompt_tokens,output_tokens\n1,2,3\n1,many,3\n", "line 3"),
        ("time_s,prompt_tokens,output_tokens\n1,2,-3\n", "line 2"),
        ("time_s,prompt_tokens,output_tokens\nnan,2,3\n", "line 2"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n", "line 2"),
    ],
)
def test_a_bad_trace_names_its_line(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        _read(tmp_path, text)


def test_a_trace_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read(str(tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        read(str(tmp_path / "binary"))


def _read(folder: Path, text: str) -> list[Arrival]:
    path = folder / "trace"
    path.write_text(text)
    return read(str(path))
