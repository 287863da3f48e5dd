from __future__ import annotations

import math
from typing import Any

import pytest

from wattline.store import Entry, StoreRefusedError

GOOD: dict[str, Any] = {"at": 1.0, "kind": "k", "project": "p", "actor": "a", "schema": 1, "payload": b"{}"}


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("at", math.nan, "finite"),
        ("at", math.inf, "finite"),
        ("schema", -1, "schema"),
        ("schema", 2**32, "schema"),
        ("kind", "k" * 201, "at most 200"),
        ("project", "two\nlines", "printable"),
        ("actor", "\x1b[31mred", "printable"),
        ("actor", "\ud800", "printable"),
    ],
)
def test_an_entry_that_could_not_be_kept_exactly_is_refused_where_it_is_made(
    field: str, value: object, says: str
) -> None:
    with pytest.raises(StoreRefusedError, match=says):
        Entry(**{**GOOD, field: value})


def test_an_entry_at_the_limits_is_accepted() -> None:
    assert Entry(**{**GOOD, "kind": "k" * 200, "project": "", "schema": 2**32 - 1}).schema == 2**32 - 1
