"""The page's structure, without a browser: complete, self-contained, free of foreign markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from page_recordings import HOSTILE, failed, page, stream, uneven, uneven_page

from legato.cli import main
from legato.metrics.summary import summarise
from legato.recording import Recording
from legato.report.figures import ms, within


class Page(HTMLParser):
    """Tags, scripts by kind, and all visible text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.data: dict[str, object] = {}
        self.visible = ""
        self._inside: dict[str, str | None] | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = dict(attrs) | {"tag": tag}

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            self.visible += data
        elif self._inside.get("type") == "application/json":
            self.data[str(self._inside["id"])] = json.loads(data)
        elif self._inside["tag"] == "script":
            self.scripts.append(data)

    def sections(self) -> list[str]:
        return [str(attrs["id"]) for tag, attrs in self.tags if tag == "section"]


@pytest.fixture(scope="module")
def whole() -> Page:
    return Page(uneven_page())


def test_every_part_of_the_report_is_on_the_page(whole: Page) -> None:
    assert whole.sections() == [
        "figures",
        "distribution",
        "time",
        "against",
        "roll",
        "failures",
        "smoothness",
        "tools",
        "instrument",
        "settings",
    ]
    charts = [attrs["data-chart"] for tag, attrs in whole.tags if "data-chart" in attrs]
    assert charts == [
        "itl-distribution",
        "gaps-over-time",
        "itl-position",
        "itl-context",
        "itl-concurrency",
    ]
    held = whole.data["charts"]
    assert isinstance(held, dict)
    assert list(held["charts"]) == charts


def test_the_navigation_reaches_every_section_and_nothing_else(whole: Page) -> None:
    links = [attrs["href"] for tag, attrs in whole.tags if tag == "a"]
    assert links == [f"#{identity}" for identity in whole.sections()]


def test_the_table_shows_each_percentile_with_its_interval(whole: Page) -> None:
    itl_ms = summarise(uneven())["itl_ms"]
    for name in ("p50", "p90", "p99"):
        low_ms, high_ms = itl_ms["ci95"][name]
        around = within(low_ms, high_ms, itl_ms[name])
        assert f"{ms(itl_ms[name])}{around}" in whole.visible


def test_nothing_on_the_page_is_loaded_from_anywhere(whole: Page) -> None:
    for tag, attrs in whole.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert "src" not in attrs
        assert attrs.get("href", "#").startswith("#")  # type: ignore[union-attr]
    html = uneven_page()
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "sourceMappingURL" not in html


def test_the_policy_allows_exactly_the_scripts_of_the_page_and_no_connection(whole: Page) -> None:
    [policy] = [
        str(attrs["content"])
        for tag, attrs in whole.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert "connect-src" not in policy
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in whole.scripts
    ]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert len(hashes) == len(set(hashes)) > 3


def test_what_a_server_said_is_shown_as_text_and_makes_no_tag() -> None:
    hostile = Page(page(failed()))
    assert "onerror" in hostile.visible
    assert not [tag for tag, attrs in hostile.tags if tag == "img" or "onerror" in attrs]
    assert len(hostile.scripts) == len(Page(uneven_page()).scripts)
    assert HOSTILE not in page(failed())
    assert HOSTILE not in uneven_page()


def test_a_page_of_failures_says_so_and_leaves_out_what_it_cannot_show() -> None:
    found = Page(page(failed()))
    assert found.sections() == ["roll", "failures", "instrument", "settings"]
    assert "FAILED" in found.visible
    assert "6 × HTTP 503" in found.visible


def test_an_empty_recording_makes_a_page() -> None:
    found = Page(page(Recording.from_streams([])))
    assert found.sections() == []
    assert "Nothing was measured" in found.visible


@pytest.mark.parametrize("arrivals_ms", [[50], [50, 60], [50, 50, 50]])
def test_a_single_short_stream_makes_a_page(arrivals_ms: list[float]) -> None:
    assert "roll" in Page(page(Recording.from_streams([stream(0, arrivals_ms)]))).sections()


def test_the_texts_of_a_recording_are_not_in_its_page() -> None:
    arrivals = [50.0, 60.0, 70.0]
    words = ["incomprehensibilities", "antidisestablishment", "floccinaucinihil"]
    kept = Recording.from_streams([stream(0, arrivals, text=words)])
    assert not [word for word in words if word in page(kept)]


def test_the_page_names_what_thinning_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("legato.report.html.roll.MOST_BYTES", 900)
    assert re.search(r"One chunk in \d+ is drawn", page(uneven()))


def test_the_command_writes_the_page_and_still_prints_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = tmp_path / "run.parquet", tmp_path / "page.html"
    uneven().write(run)
    main(["report", str(run), "--json", "--html", str(out)])
    printed = capsys.readouterr()
    assert json.loads(printed.out)["streams"]["total"] == 40
    assert str(out) in printed.err
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_page_that_cannot_be_written_is_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run.parquet"
    uneven(streams=3).write(run)
    assert main(["report", str(run), "--html", str(tmp_path / "no" / "page.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
