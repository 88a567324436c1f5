from __future__ import annotations

import json
from pathlib import Path

import pytest

from legato.errors import UsageError
from legato.traffic.promptfile import Entry, read


def _read(folder: Path, text: str) -> list[Entry]:
    path = folder / "prompts"
    path.write_text(text)
    return read(str(path))


def test_a_text_is_a_prompt_a_line(tmp_path: Path) -> None:
    assert _read(tmp_path, "one\n\n  two words \n") == [Entry("one"), Entry("two words")]


def test_lines_of_json_are_bodies(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hi"}]
    text = json.dumps({"messages": messages, "temperature": 0.5}) + "\n"
    text += json.dumps({"prompt": "once", "max_tokens": 5})
    assert _read(tmp_path, text) == [
        Entry(None, {"messages": messages, "temperature": 0.5}),
        Entry("once", {"max_tokens": 5}),
    ]


def test_a_share_gpt_file_gives_the_first_human_turns(tmp_path: Path) -> None:
    conversations = [
        {
            "id": "a",
            "conversations": [
                {"from": "human", "value": "hello"},
                {"from": "gpt", "value": "hi there"},
                {"from": "human", "value": "more"},
            ],
        },
        {"id": "b", "conversations": [{"from": "gpt", "value": "alone"}]},
        {
            "id": "c",
            "conversations": [{"from": "system", "value": "x"}, {"from": "user", "value": "q"}],
        },
    ]
    assert _read(tmp_path, json.dumps(conversations)) == [Entry("hello"), Entry("q")]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no prompt"),
        ("[]", "no prompt"),
        ("[1]", "entry 1"),
        ('[{"conversations": 5}]', "entry 1"),
        ("[{", "not JSON"),
        ('{"prompt": "a"}\n{"prompt": 5}', "line 2"),
        ('{"prompt": "a"}\n{', "line 2"),
        ('{"messages": []}', "line 1"),
        ('{"messages": ["x"]}', "line 1"),
    ],
)
def test_a_bad_file_names_its_place(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        _read(tmp_path, text)
