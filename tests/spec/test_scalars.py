from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.spec.scalars import resolve


@pytest.mark.parametrize(
    "text", ["no", "on", "yes", "off", "y", "22:30", "1_000", "2026-12-01", "0b11", "1e", "."]
)
def test_what_older_yaml_would_have_changed_stays_text(text: str) -> None:
    assert resolve(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("12", 12),
        ("-012", -12),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        (".inf", math.inf),
        ("-.INF", -math.inf),
    ],
)
def test_a_plain_scalar_means_what_the_core_schema_says(text: str, value: object) -> None:
    resolved = resolve(text)
    assert resolved == value
    assert type(resolved) is type(value)


def test_a_number_of_endless_digits_stays_text() -> None:
    assert resolve("9" * 10_000) == "9" * 10_000
    assert math.isnan(float(str(resolve(".nan"))))


@given(st.integers())
def test_every_whole_number_is_read_as_itself(number: int) -> None:
    assert resolve(str(number)) == (number if len(str(number)) <= 64 else str(number))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_is_read_as_itself(number: float) -> None:
    assert resolve(repr(number)) == number
