from __future__ import annotations

import pytest

from wattline.spec.ranges import check_name_or_range, names_in


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("r1", ("r1",)),
        ("r2..r4", ("r2", "r3", "r4")),
        ("r08..r10", ("r08", "r09", "r10")),
        ("r9..r10", ("r9", "r10")),
        ("row-1.r1..row-1.r2", ("row-1.r1", "row-1.r2")),
        ("a1b1..a1b2", ("a1b1", "a1b2")),
        ("7..7", ("7",)),
    ],
)
def test_a_range_stands_for_every_name_in_it(written: str, names: tuple[str, ...]) -> None:
    assert check_name_or_range(written) == written
    assert names_in(written) == names


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("r9..r1", "goes up"),
        ("r1..q4", "differ in the number"),
        ("r1..", "differ in the number"),
        ("..r1", "differ in the number"),
        ("../etc", "differ in the number"),
        ("r1...r2", "differ in the number"),
        ("r 1..r 2", "a name is"),
        ("../1..../2", "a name is"),
        ("r0..r10000", "at most 10,000"),
        ("r1..r99999999999", "differ in the number"),
        ("r\u202e1..r\u202e2", "direction character"),
    ],
)
def test_what_is_no_range_is_refused(written: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        check_name_or_range(written)
