from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.rendering.hostile import TEXTS
from checks.rendering.page import Page
from wattline.checks.rendering.escaping import code, markdown, marker, one_line, sentence, units, visible


@given(TEXTS)
def test_a_text_stays_one_paragraph_that_says_the_same(text: str) -> None:
    page = Page(f"a{markdown(text)}z")
    assert page.tags == ["p"]
    assert page.text.strip().replace("\u200b", "") == f"a{one_line(text)}z"


@given(TEXTS)
def test_a_name_in_a_table_opens_no_other_cell_and_no_other_row(text: str) -> None:
    page = Page(f"| x |\n| :-- |\n| {code(text) or '-'} |\n")
    assert page.tags.count("td") == 1
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


@given(st.text(max_size=300), st.integers(10, 80))
def test_what_is_written_is_never_longer_than_asked(text: str, most: int) -> None:
    assert len(markdown(text, most)) <= most
    assert len(sentence(text, most)) <= most
    assert len(one_line(text, most)) <= most


@given(TEXTS)
def test_nothing_hidden_is_left(text: str) -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not [letter for letter in one_line(text) if unicodedata.category(letter) in hidden]


@pytest.mark.parametrize(
    "text",
    [
        "@ada",
        "@acme/team",
        "x @ada",
        "#12",
        "acme/repo#12",
        "GH-12",
        "!7",
        "a@b.c",
        "https://x.io",
        "www.x.io",
        ":tada:",
    ],
)
def test_what_a_page_would_make_a_link_or_a_ping_of_is_read_apart(text: str) -> None:
    alive = r"@\w|#\d|!\d|GH-\d|\w://|www\.|:\w+:"
    assert re.search(alive, text)
    assert not re.search(alive, Page(f"a {markdown(text)}").text)


def test_a_moment_and_a_path_stay_as_people_copy_them() -> None:
    assert markdown("2026-12-01T08:00:00Z data/a-b.txt") == "2026-12-01T08:00:00Z data/a-b.txt"


def test_what_stands_between_backticks_is_code_and_keeps_its_spaces() -> None:
    assert sentence("say `wattline run` twice") == "say <code>wattline run</code> twice"
    assert sentence("an odd ` is text") == "an odd &#96; is text"


@given(TEXTS)
def test_a_marker_is_one_comment_whatever_the_file_is_called(file: str) -> None:
    page = Page(f"{marker(file)}\n\nafter")
    assert len(page.comments) == 1
    assert page.text.strip() == "after"


def test_two_files_with_long_names_have_two_markers() -> None:
    assert marker("a" * 5000) != marker("a" * 5001)
    assert len(marker("a" * 5000)) < 500


def test_hidden_characters_are_told_by_number() -> None:
    assert visible("a\u202eb\x00\n") == "a\\u202eb\\u0000\n"


def test_a_face_counts_for_two_where_utf_16_is_counted() -> None:
    assert units("a😀") == 3
