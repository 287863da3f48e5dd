"""A wait tells of its forecast before it is over."""

from __future__ import annotations

from wattline.twin.milestones import Milestones
from wattline.twin.recalibrating import Recalibration, Wait


def a_line(jobs: int) -> Milestones:
    milestones = Milestones()
    for number in range(jobs):
        milestones.come(f"j{number}", "line")
    return milestones


def test_who_has_seen_half_of_those_ahead_leave_has_waited_for_half_of_it() -> None:
    milestones = a_line(8)
    milestones.tell("j7")
    passed = [(number, told) for number in range(8) for told in milestones.leave(f"j{number}")]
    assert passed == [(1, ("j7", 0.25)), (3, ("j7", 0.5)), (5, ("j7", 0.75))]


def test_other_lines_and_who_was_told_nothing_do_not_count() -> None:
    milestones = a_line(4)
    milestones.come("other", "elsewhere")
    milestones.tell("j3")
    assert list(milestones.leave("other")) == []
    assert list(milestones.leave("unknown")) == []
    assert [list(milestones.leave(f"j{number}")) for number in range(3)] == [
        [("j3", 0.25)],
        [("j3", 0.5)],
        [("j3", 0.75)],
    ]


def test_who_has_left_before_others_passes_no_milestone() -> None:
    milestones = a_line(8)
    milestones.tell("j7")
    assert list(milestones.leave("j7")) == []
    assert not any(list(milestones.leave(f"j{number}")) for number in range(7))


def test_a_wait_that_is_half_over_after_twice_as_long_makes_the_next_forecast_longer() -> None:
    recalibration = Recalibration()
    wait = Wait(1000.0, 2000.0)
    before = recalibration.correct(("lines",), wait)
    for number in range(20):
        recalibration.tell(f"j{number}", ("lines",), 0.0, wait)
    for number in range(20):
        recalibration.half_way(f"j{number}", 2000.0, 0.5)
    after = recalibration.correct(("lines",), wait)
    assert after.p50_seconds > before.p50_seconds
    assert after.p90_seconds > before.p90_seconds
