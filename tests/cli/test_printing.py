from __future__ import annotations

import io
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.cli.printing import plain, print_json, stdout_console


@given(st.text())
def test_plain_text_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = plain(text)
    controls = [letter for letter in shown if unicodedata.category(letter) == "Cc"]
    assert set(controls) <= {"\n", "\t"}


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Zs"])))
def test_plain_text_leaves_words_as_they_are(text: str) -> None:
    assert plain(text) == text


def test_orders_to_a_terminal_become_visible() -> None:
    assert plain("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m"
    assert plain("10 %\r20 %\r\ndone") == "10 %\n20 %\ndone"
    assert plain("abc\u202edef") == "abc\\u202edef"


def test_what_is_not_finite_is_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"celsius": float("nan"), "name": "Zürich"})
    assert '"celsius": null' in capsys.readouterr().out


def test_symbols_are_spelled_where_the_encoding_lacks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    stdout_console().print("zurich → frankfurt, 8×A100, █░, ☃")
    sys.stdout.flush()
    assert raw.getvalue() == b"zurich -> frankfurt, 8xA100, #-, ?\n"
