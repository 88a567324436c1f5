"""The rendered summary. `python tests/report/test_terminal.py` rewrites the kept pages."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
import summaries
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from legato.metronome.pattern import Pattern
from legato.report.terminal import render

SNAPSHOTS = Path(__file__).parent / "snapshots"
SITUATIONS = {
    "smooth": summaries.smooth,
    "bursty": summaries.bursty,
    "multi_token": summaries.multi_token,
    "stalls": summaries.stalls,
    "shared_stalls": summaries.shared_stalls,
    "uneven": summaries.uneven,
    "some_timed_out": summaries.some_timed_out,
    "embedded": summaries.embedded,
    "degraded": summaries.degraded,
    "invalid": summaries.invalid,
    "all_failed": summaries.all_failed,
    "all_cut": summaries.all_cut,
    "not_streaming": summaries.not_streaming,
    "partial": summaries.partial,
    "open_loop": summaries.open_loop,
}
WIDTHS = (80, 120)


def rendered(summary: dict[str, Any], width: int) -> str:
    file = io.StringIO()
    render(summary, Console(file=file, width=width, no_color=True, force_terminal=False))
    return file.getvalue()


def kept(name: str, width: int) -> Path:
    return SNAPSHOTS / f"{name}-{width}.txt"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SITUATIONS)
def test_the_page_is_exactly_the_kept_one(name: str, width: int) -> None:
    assert rendered(SITUATIONS[name](), width) == kept(name, width).read_text("utf-8")


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_value_may_be_null_and_no_line_is_wider_than_the_console(data: st.DataObject) -> None:
    summary = data.draw(st.sampled_from(list(SITUATIONS.values())))()
    _forget_some(summary, data)
    width = data.draw(st.integers(20, 130))
    for line in rendered(summary, width).splitlines():
        assert cell_len(line) <= width


@given(
    error=st.text(max_size=400),
    path=st.text(max_size=200),
    width=st.integers(20, 130),
)
@settings(max_examples=80, deadline=None)
def test_foreign_text_neither_overflows_nor_reaches_the_terminal_as_control(
    error: str, path: str, width: int
) -> None:
    summary = summaries.all_failed()
    summary["failures"][0]["error"] = error
    summary["run"]["recording"] = path
    page = rendered(summary, width)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert all(cell_len(line) <= width for line in page.splitlines())


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_console_that_knows_only_ascii_gets_ascii(name: str) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    render(SITUATIONS[name](), Console(file=file, width=80))
    file.flush()
    assert raw.getvalue().decode("ascii").strip()


def test_the_ascii_histogram_still_shows_where_the_gaps_are() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    render(summaries.smooth(), Console(file=file, width=80))
    file.seek(0)
    assert "###" in file.read()


def test_colour_appears_on_a_terminal_and_only_there() -> None:
    def page(**options: Any) -> str:
        file = io.StringIO()
        render(summaries.invalid(), Console(file=file, width=80, **options))
        return file.getvalue()

    coloured = page(force_terminal=True, color_system="standard", no_color=False)
    assert "\x1b[1;37;41m INVALID \x1b[0m" in coloured
    assert "\x1b" not in page(force_terminal=False)
    assert not re.search(r"\x1b\[[0-9;]*[34]\d", page(force_terminal=True, no_color=True))


def test_no_text_is_dim() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system="standard")
    for situation in SITUATIONS.values():
        render(situation(), console)
    styles = re.findall(r"\x1b\[([0-9;]*)m", file.getvalue())
    assert styles
    assert not any("2" in style.split(";") for style in styles)


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_line_ends_in_blanks(name: str) -> None:
    page = rendered(SITUATIONS[name](), 80)
    assert not re.search(r"[ \t]$", page, re.MULTILINE)


@pytest.mark.parametrize("width", [40, 50, 60])
def test_a_narrow_page_leaves_columns_out_rather_than_break_a_figure(width: int) -> None:
    page = rendered(summaries.smooth(), width)
    itl = next(line for line in page.splitlines() if line.startswith("ITL "))
    assert re.findall(r"[\d.]+ ms", itl)[0] == "10.0 ms"
    assert "11.2 ms" in itl
    assert not re.search(r"^\s*(ms|s|µs)\b", page, re.MULTILINE)


def test_a_run_of_the_built_in_metronome_says_what_was_measured_and_how_it_is_set() -> None:
    set_to = Pattern()
    assert (
        f"built-in metronome (set: {set_to.gap_ms:g} ms a token, first after"
        f" {set_to.first_token_ms:g} ms)"
    ) in rendered(summaries.embedded(), 120)


def test_the_title_says_how_many_requests_were_warm_up() -> None:
    assert "100 requests after 10 of warm-up" in rendered(summaries.embedded(), 120)


def test_an_interval_is_never_narrower_than_the_instruments_error() -> None:
    summary = summaries.smooth()
    summary["itl_ms"]["ci95"]["p50"] = [9.9999, 10.0001]
    summary["instrument"]["error_us"]["p50"] = 3.5
    assert "±0.004 ms" in rendered(summary, 80)


def test_answers_of_one_token_have_no_block_of_other_tools() -> None:
    summary = summaries.smooth()
    summary["itl_ms"] = {"n": 0}
    assert "other tools" not in rendered(summary, 80)


def test_the_chunk_gap_is_shown_only_where_it_differs_from_itl() -> None:
    assert "chunk gap" not in rendered(summaries.smooth(), 80)
    assert "chunk gap" in rendered(summaries.multi_token(), 80)


def test_an_empty_summary_is_rendered_as_nothing_measured() -> None:
    assert "Nothing was measured" in rendered({}, 80)


def _forget_some(node: Any, data: st.DataObject) -> None:
    """Replace any values below `node` by null, at any depth; drop others altogether."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    for key in keys:
        choice = data.draw(st.integers(0, 9))
        if choice == 0:
            node[key] = None
        elif choice == 1 and isinstance(node, dict):
            del node[key]
        elif isinstance(node[key], (dict, list)) and len(node[key]) < 30:
            _forget_some(node[key], data)


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    for situation_name, situation in SITUATIONS.items():
        for columns in WIDTHS:
            page = rendered(situation(), columns)
            kept(situation_name, columns).write_text(page, "utf-8")
