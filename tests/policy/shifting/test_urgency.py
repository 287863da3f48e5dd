"""Who can wait no longer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.policy.shifting.urgency import Waitable, choose_urgent

HOUR = 3600.0


@pytest.mark.parametrize(("slack", "is_urgent"), [(0.0, True), (HOUR - 1.0, True), (HOUR, False)])
def test_a_job_is_urgent_exactly_when_the_next_look_is_too_late(slack: float, *, is_urgent: bool) -> None:
    jobs = [Waitable("a", 5 * HOUR, slack, 1.0)]
    assert (choose_urgent(jobs, 10.0, HOUR) == {"a"}) is is_urgent


def test_when_all_start_as_late_as_they_can_and_do_not_fit_some_start_now() -> None:
    jobs = [Waitable(name, 4 * HOUR, 3 * HOUR, 1.0) for name in "abcdef"]
    assert choose_urgent(jobs, 10.0, HOUR) == set()
    assert choose_urgent(jobs, 4.0, HOUR) != set()


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 20)), max_size=25),
    st.integers(1, 6),
)
def test_whoever_keeps_to_it_misses_no_deadline_that_could_be_kept_with_room_to_spare(
    drawn: list[tuple[int, int]], capacity: int
) -> None:
    """Play it hour by hour: only urgent jobs run. What fits a fleet of this size one by one is in time."""
    left = {f"j{number}": float(work) for number, (work, _) in enumerate(drawn)}
    due = {f"j{number}": float(work + slack + 1) for number, (work, slack) in enumerate(drawn)}
    if not _would_fit(left, due, capacity * 0.9):
        return
    for hour in range(60):
        jobs = [
            Waitable(name, work * HOUR, (due[name] - hour - work) * HOUR, 1.0)
            for name, work in left.items()
            if work > 0.0
        ]
        urgent = choose_urgent(jobs, float(capacity), HOUR)
        running = [job.name for job in sorted(jobs, key=lambda job: job.slack_seconds) if job.name in urgent]
        for name in running[:capacity]:
            left[name] -= 1.0
            assert left[name] > 0.0 or hour + 1 <= due[name]
    assert not any(left.values())


def _would_fit(work: dict[str, float], due: dict[str, float], capacity: float) -> bool:
    """Whether, by every hour, no more must be done than half of what can be: hours are not cut in pieces."""
    return all(
        sum(max(0.0, work[name] - max(0.0, due[name] - hour)) for name in work) <= capacity * hour / 2.0
        for hour in range(1, 60)
    )
