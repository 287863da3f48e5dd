from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from twin.recording import a_layout, a_report, a_timeline
from wattline.errors import UnavailableError
from wattline.twin.page import write_page

SMALL = a_layout(("ashburn",), racks=3)
VOID = {"meta", "img", "source"}


class Reader(HTMLParser):
    """What a browser would see: tags that match, what it would fetch, and the words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.sources: list[str] = []
        self.handlers: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "srcset", "href")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(a_report(), a_timeline(days=1), path)
    return path.read_text(encoding="utf-8")


def test_the_page_is_whole_and_holds_everything_it_shows(page: str) -> None:
    read = Reader(page)
    assert read.open == []
    assert len(read.sources) == 10  # five pictures, by day and by night
    assert all(source.startswith("data:image/png;base64,") for source in read.sources)
    assert "script" not in read.tags
    assert re.search(r"url\(|@import|https?:", page) is None
    assert len(page.encode()) < 3_000_000


def test_the_page_tells_the_figures_and_that_they_are_emulated(page: str) -> None:
    words = Reader(page).words
    for said in (
        "emulated: a twin, not measurements",
        "5,234",
        "1.75 GWh",
        "singapore",
        "gang.size",
        "b0a1c2d3",
    ):
        assert said in words


def test_the_page_follows_the_screen_and_prints_on_white(page: str) -> None:
    assert page.count('media="screen and (prefers-color-scheme: dark)"') == 5
    assert "@media print" in page


def test_nothing_from_outside_becomes_markup(tmp_path: Path) -> None:
    evil = "\"'><img src=http://x onerror=alert(1)><script>alert(1)</script>"
    site = a_report().sites["lulea"]
    report = a_report(
        trace=evil, facility=evil, policy=evil, digest=evil, sites={evil: site}, refused_because={evil: 1}
    )
    write_page(report, a_timeline(days=0.05, layout=a_layout((evil,), racks=1)), tmp_path / "report.html")
    read = Reader((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert read.open == []
    assert read.handlers == []
    assert "script" not in read.tags
    assert all(source.startswith("data:") for source in read.sources)
    assert evil in read.words


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot be written"):
        write_page(a_report(), a_timeline(days=0.05, layout=SMALL), tmp_path)
