"""The page in a real Chromium: it draws, obeys keys, prints, and asks nothing of a network."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from page_recordings import failed, page, stream, uneven_page

from legato.recording import Recording

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("playwright") is None, reason="playwright is not installed"
    ),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine"),
]

Opener = Callable[..., "Tab"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Opens a page from disk; afterwards nothing may have complained or been asked."""
    complaints: list[str] = []
    requests: list[str] = []
    tabs: list[Tab] = []

    def open_page(html: str, **options: str) -> Tab:
        file = tmp_path / f"{len(tabs)}.html"
        file.write_text(html, encoding="utf-8")
        tab = browser.new_page(viewport={"width": 1280, "height": 900}, **options)  # type: ignore[arg-type]
        tabs.append(tab)
        tab.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(file.as_uri())
        return tab

    yield open_page
    for tab in tabs:
        tab.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("file:")] == []
    assert len(requests) == len(tabs)


def background(tab: Tab) -> str:
    found = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert isinstance(found, str)
    return found


def painted_colours(tab: Tab) -> int:
    """How many colours the piano roll has; an empty canvas has one."""
    found = tab.evaluate(
        """() => {
            const canvas = document.getElementById("roll-canvas");
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.data.buffer)).size;
        }"""
    )
    assert isinstance(found, int)
    return found


def test_every_chart_and_the_piano_roll_are_drawn(opened: Opener) -> None:
    tab = opened(uneven_page())
    places = tab.locator("[data-chart]")
    assert places.count() == 5
    for index in range(5):
        assert places.nth(index).locator("svg path").count() > 5
    assert painted_colours(tab) > 5


@pytest.mark.parametrize(
    "recording",
    [failed(), Recording.from_streams([]), Recording.from_streams([stream(0, [50.0, 60.0])])],
    ids=["failed", "empty", "one stream"],
)
def test_a_page_with_little_to_show_opens_without_a_complaint(
    opened: Opener, recording: Recording
) -> None:
    assert opened(page(recording)).locator("h1").count() == 1


def test_what_a_server_said_does_not_run(opened: Opener) -> None:
    tab = opened(page(failed()))
    assert tab.title() != "owned"
    assert tab.locator("img").count() == 0
    assert "onerror" in tab.locator("#failures").inner_text()


def test_a_script_that_was_slipped_in_would_be_refused(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    html = uneven_page().replace("</main>", "<script>document.title='owned'</script></main>")
    file.write_text(html, encoding="utf-8")
    tab = browser.new_page()
    tab.goto(file.as_uri())
    assert tab.title() == "legato: tiny"
    tab.close()


def test_the_piano_roll_obeys_the_keys(opened: Opener) -> None:
    tab = opened(uneven_page())
    canvas, status = tab.locator("#roll-canvas"), tab.locator("#roll-status")
    canvas.focus()
    canvas.press("n")
    assert "a stall" in status.inner_text()
    first = status.inner_text()
    canvas.press("n")
    assert "a stall" in status.inner_text()
    assert status.inner_text() != first
    canvas.press("p")
    assert status.inner_text() == first
    canvas.press("ArrowRight")
    assert "a stall" not in status.inner_text()
    canvas.press("0")
    canvas.press("Home")
    canvas.press("ArrowDown")
    assert status.inner_text().startswith("stream 0 · ok · sent at 0 ·")
    canvas.press("ArrowDown")
    assert status.inner_text().startswith("stream 1 · ok · sent at 20 ms")


def test_a_stall_in_the_table_leads_to_its_place_in_the_piano_roll(opened: Opener) -> None:
    tab = opened(uneven_page())
    first = tab.locator("button.jump").first
    name = first.inner_text()
    first.click()
    said = tab.locator("#roll-status").inner_text()
    assert said.startswith(f"stream {name} ·")
    assert "a stall" in said
    assert tab.evaluate("document.activeElement.id") == "roll-canvas"


def test_rows_can_be_ordered_by_their_longest_gap(opened: Opener) -> None:
    tab = opened(uneven_page())
    tab.get_by_label("Order").select_option("longest gap")
    canvas = tab.locator("#roll-canvas")
    canvas.press("ArrowDown")
    longest = tab.locator("button.jump").first.inner_text()
    assert tab.locator("#roll-status").inner_text().startswith(f"stream {longest} ·")


def test_the_page_follows_the_systems_theme_and_the_button_overrules_it(opened: Opener) -> None:
    light, dark = (
        opened(uneven_page(), color_scheme="light"),
        opened(uneven_page(), color_scheme="dark"),
    )
    assert background(light) == "rgb(255, 255, 255)"
    assert background(dark) != background(light)
    button = light.get_by_role("button", name="Theme")
    button.click()
    button.click()
    assert background(light) == background(dark)


def test_on_paper_the_page_is_light_and_without_controls(opened: Opener) -> None:
    tab = opened(uneven_page(), color_scheme="dark")
    tab.emulate_media(media="print", color_scheme="dark")
    assert background(tab) == "rgb(255, 255, 255)"
    assert not tab.locator("#roll-controls").is_visible()
    label = tab.locator("[data-chart=itl-distribution] svg text").first
    assert label.get_attribute("fill") == "#57606a"
    assert tab.pdf().startswith(b"%PDF")


def test_a_narrow_window_has_no_sideways_scroll(opened: Opener) -> None:
    tab = opened(uneven_page())
    tab.set_viewport_size({"width": 480, "height": 800})
    tab.wait_for_function("document.querySelector('[data-chart]').drawnWidth < 480")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 480


def test_everything_that_can_be_used_can_be_reached_by_tab(opened: Opener) -> None:
    tab = opened(uneven_page())
    reached = set()
    for _ in range(60):
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert {"roll-canvas", "Figures", "Settings", "Theme: auto", "stall ▸", "reset"} <= reached
