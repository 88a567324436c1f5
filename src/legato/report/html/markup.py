"""HTML built so that text is escaped by construction: only what `element` made is markup.

Strings from servers (errors, model names, URLs) end up on the page; none may end up as a tag.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

VOID = frozenset({"meta", "br", "input"})


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is HTML already."""

    html: str


Child = str | Markup | None


def element(name: str, *children: Child, **attributes: str | bool | None) -> Markup:
    """A tag; strings inside it are escaped, None is left out. `class_` and `data_x` are the
    attributes `class` and `data-x`; True is a bare attribute, False and None are none."""
    opening = name + "".join(map(_attribute, attributes.items()))
    if name in VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{together(children).html}</{name}>")


def together(children: Iterable[Child]) -> Markup:
    return Markup("".join(map(_inner, children)))


def table(header: Sequence[Child], rows: Iterable[Sequence[Child]], **attributes: str) -> Markup:
    """A table whose first column names its rows."""
    head = element("tr", *(element("th", cell, scope="col") for cell in header))
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell) for cell in row[1:]),
        )
        for row in rows
    ]
    whole = element("table", element("thead", head), element("tbody", *body), **attributes)
    # A wide table scrolls by itself; focusable, so that arrow keys can do it.
    return element("div", whole, class_="scroll", tabindex="0")


def pairs(lines: Iterable[tuple[Child, Child]]) -> Markup | None:
    """Labelled sentences; None where there are none."""
    rows = [
        element("div", element("dt", label), element("dd", sentence)) for label, sentence in lines
    ]
    return element("dl", *rows) if rows else None


def json_script(identity: str, document: Any) -> Markup:
    """Data for the page's scripts. Without `<` no string can end the element it stands in."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="{escape(identity)}">{text}</script>')


def _inner(child: Child) -> str:
    if child is None:
        return ""
    return child.html if isinstance(child, Markup) else escape(child)


def _attribute(pair: tuple[str, str | bool | None]) -> str:
    name, value = pair
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
