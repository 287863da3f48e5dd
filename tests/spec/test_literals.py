from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.spec.literals import WORTH, SpellingError, promote, tokens_of


@pytest.mark.parametrize(
    ("written", "promoted"),
    [
        ("a > 3", "a > 3.0"),
        ("a > 3.5", "a > 3.5"),
        ("a > .5", "a > 0.5"),
        ("a > 1e3", "a > 1000.0"),
        ("a < 15%", "a < 0.15"),
        ("a < 40kW", "a < 40000.0"),
        ("a < 6h&&b", "a < 21600.0&&b"),
        ("a < 40Gbps", "a < 40000000000.0"),
        ("a < 10GB/s", "a < 10000000000.0"),
        ("a < 10GB / s", "a < 10000000000.0 / s"),
        ("a < 25°C", "a < 25.0"),
        ("latency_p95_ms <= 40", "latency_p95_ms <= 40.0"),
        ("h100 > 1", "h100 > 1.0"),
        ("a[0] == b[12]", "a[0] == b[12]"),
        ("f(x)[0] > 1", "f(x)[0] > 1.0"),
        ("a in [4]", "a in [4.0]"),
        ("a in [4, 8]", "a in [4.0, 8.0]"),
        ("a == '15%'", "a == '15%'"),
        ('a == "it\'s 3"', 'a == "it\'s 3"'),
        (r"a == 'x\'3'", r"a == 'x\'3'"),
        ("a == r'3\\'", "a == r'3\\'"),
        ("a > 1 // 15% or 3", "a > 1.0 // 15% or 3"),
        ("a == '''3\n4'''", "a == '''3\n4'''"),
    ],
)
def test_numbers_become_doubles_in_base_units_and_the_rest_stays(written: str, promoted: str) -> None:
    assert promote(written).text == promoted


@pytest.mark.parametrize(
    ("written", "message", "nearest"),
    [
        ("a > 40KW", "at column 5: unknown unit 'KW'", "kW"),
        ("a > 3u", "at column 5: unknown unit 'u'", None),
        ("a > 0x1f", "at column 5: unknown unit 'x1f'", None),
        ("a > 1e999", "at column 5: 1e999 is too large a number", None),
    ],
)
def test_a_number_that_cannot_be_meant_is_refused_where_it_stands(
    written: str, message: str, nearest: str | None
) -> None:
    with pytest.raises(SpellingError) as raised:
        promote(written)
    assert raised.value.summary == message
    assert raised.value.nearest == nearest


@pytest.mark.parametrize(
    "written", ["minutes_to_throttle < 20min", "2h >= wait_minutes", "latency_p95_ms < 40ms"]
)
def test_a_name_in_minutes_is_not_compared_with_seconds(written: str) -> None:
    with pytest.raises(SpellingError, match="compares with a number without a unit"):
        promote(written)


def test_a_name_in_seconds_is_compared_with_any_duration() -> None:
    assert promote("max_duration_seconds > 6h").text == "max_duration_seconds > 21600.0"


@given(st.lists(st.sampled_from(["15%", "a", " ", "\n", "3", "40kW", "'7%'", "&&", "é", "[0]"]), max_size=20))
def test_every_token_that_stays_is_found_again_where_it_was_written(parts: list[str]) -> None:
    written = " ".join(parts)
    promoted = promote(written)
    for token in tokens_of(promoted.text):
        if token.kind != "number":
            offset = promoted.written_offset(token.offset)
            assert written[offset : offset + len(token.text)] == token.text


@given(unit=st.sampled_from(sorted(WORTH)), number=st.integers(0, 10**6))
def test_every_unit_of_every_kind_is_read_at_its_worth(unit: str, number: int) -> None:
    assert float(promote(f"{number}{unit}").text) == pytest.approx(number * WORTH[unit])
