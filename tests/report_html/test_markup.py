"""Markup is escaped by construction."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from legato.report.html.markup import element, json_script, pairs, table, together


class Reader(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


# HTML forbids NUL and rewrites carriage returns; neither can open a tag.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]))


@given(texts)
def test_text_never_becomes_a_tag_and_reads_back_as_it_was(text: str) -> None:
    found = Reader(element("p", text).html)
    assert found.tags == [("p", {})]
    assert "".join(found.texts) == text


@given(texts)
def test_an_attribute_never_ends_early(text: str) -> None:
    found = Reader(element("p", title=text).html)
    assert found.tags == [("p", {"title": text})]


@settings(max_examples=40)
@given(st.recursive(texts, lambda inner: st.dictionaries(texts, inner)))
def test_data_in_a_script_cannot_end_it_and_reads_back(document: object) -> None:
    html = json_script("data", document).html
    opening, closing = '<script type="application/json" id="data">', "</script>"
    inside = html.removeprefix(opening).removesuffix(closing)
    assert "<" not in inside
    assert json.loads(inside) == document


def test_attributes_that_are_false_or_none_are_left_out() -> None:
    made = element("p", hidden=True, title=None, draggable=False, class_="a", data_row="3")
    assert made.html == '<p hidden class="a" data-row="3"></p>'


def test_a_void_element_has_no_end_tag() -> None:
    assert element("meta", charset="utf-8").html == '<meta charset="utf-8">'


def test_children_that_are_none_are_left_out_and_markup_is_kept() -> None:
    assert together(["<", None, element("b", "&")]).html == "&lt;<b>&amp;</b>"


def test_a_table_names_its_rows_and_columns() -> None:
    html = table(["", "p50"], [["ITL", "10 ms"]]).html
    assert '<th scope="col">p50</th>' in html
    assert '<th scope="row">ITL</th><td>10 ms</td>' in html


def test_no_labelled_sentences_are_no_list() -> None:
    assert pairs([]) is None
