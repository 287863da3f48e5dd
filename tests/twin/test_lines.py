"""A line is taken to move as it has moved."""

from __future__ import annotations

import pytest

from wattline.twin.lines import Lines

HOUR, DAY = 3600.0, 86400.0


def moving(every: float, until: float) -> Lines:
    lines = Lines()
    for number in range(int(until / every)):
        lines.begin("small", (number + 1) * every)
    return lines


@pytest.mark.parametrize("place", [1, 10, 100])
def test_where_a_line_moves_evenly_each_place_takes_as_long(place: int) -> None:
    wait = moving(60.0, 2 * DAY).expect("small", place, 2 * DAY + 60.0, 0.0)
    assert wait.p50_seconds == pytest.approx(60.0 * place, rel=0.01)
    assert wait.p90_seconds > wait.p50_seconds


def test_a_line_that_slows_down_is_believed_in_part() -> None:
    lines = moving(60.0, 2 * DAY)
    for number in range(12):
        lines.begin("small", 2 * DAY + (number + 1) * HOUR)
    found = lines.expect("small", 10, 2 * DAY + 12 * HOUR, 0.0).p50_seconds
    assert 10 * 60.0 < found < 10 * HOUR


def test_more_than_has_ever_started_takes_longer_than_all_that_has() -> None:
    lines = moving(60.0, 10 * 60.0)
    assert lines.expect("small", 20, 660.0, 0.0).p50_seconds > 600.0


def test_a_line_that_never_moved_takes_as_long_again_as_its_first_has_waited() -> None:
    lines = moving(60.0, DAY)
    assert lines.expect("large", 2, DAY, DAY - HOUR).p50_seconds == 2 * HOUR
    assert lines.expect("large", 1, DAY, DAY).p50_seconds == 1.0
