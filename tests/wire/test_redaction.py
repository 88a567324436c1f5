from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from legato.wire.redaction import SHOWN, Redaction

secrets = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=8, max_size=40)


@given(secrets, st.text(max_size=60), st.text(max_size=60))
def test_a_secret_is_cut_out_wherever_it_stands(secret: str, before: str, after: str) -> None:
    found = Redaction.of([secret]).apply(before + secret + after)
    assert secret not in found
    assert SHOWN in found


@given(secrets, st.text(max_size=100))
def test_a_text_without_the_secret_is_left_alone(secret: str, text: str) -> None:
    if secret not in text:
        assert Redaction.of([secret]).apply(text) == text


def test_what_is_written_down_holds_no_secret_and_still_finds_it() -> None:
    written = json.dumps(Redaction.of(["sk-verysecret", "sk-verysecret-longer"]).document())
    assert "verysecret" not in written
    redaction = Redaction.read(json.loads(written))
    assert redaction.apply("a sk-verysecret-longer b sk-verysecret") == f"a {SHOWN} b {SHOWN}"
