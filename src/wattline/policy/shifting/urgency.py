"""Urgency: which of the jobs that could wait must go now, so that none comes too late?

One must go when starting at the next look would be too late at its usual speed. Also when all of them
together could not catch up after it: by some time ahead more work must have been done than there is capacity
for until then. Then those that can wait least go now, as many as make up for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

FULLEST_FRACTION = 0.95  # of the capacity to come that those who wait may count on
_MOST_LOOKS = 96


class Waitable(NamedTuple):
    """A job with a deadline, as far as its time is concerned."""

    name: str
    work_seconds: float  # the longest it still takes, getting there and back included
    slack_seconds: float  # how long from now it can stand still
    size: float  # of the capacity


def choose_urgent(jobs: Iterable[Waitable], capacity: float, look_seconds: float) -> set[str]:
    """Names of the jobs that wait no longer, given that nobody looks again before `look_seconds`."""
    by_slack = sorted(jobs, key=lambda job: (job.slack_seconds, job.name))
    urgent = {job.name for job in by_slack if job.slack_seconds < look_seconds}
    done = look_seconds * sum(job.size for job in by_slack if job.name in urgent)
    behind = _behind(by_slack, capacity * FULLEST_FRACTION, look_seconds) - done
    for job in by_slack:
        if behind <= 0.0:
            break
        if job.name not in urgent:
            urgent.add(job.name)
            behind -= look_seconds * job.size
    return urgent


def _behind(by_slack: Sequence[Waitable], capacity: float, look_seconds: float) -> float:
    """How much work could not be caught up with if nothing were done before the next look."""
    if not by_slack:
        return 0.0
    last = max(job.slack_seconds + job.work_seconds for job in by_slack)
    worst, at = 0.0, 0.0
    for _ in range(min(_MOST_LOOKS, int(last / look_seconds) + 1)):
        at += look_seconds
        # A job that starts as late as it can has done this much by then.
        asked = 0.0
        for job in by_slack:
            if job.slack_seconds >= at:
                break
            asked += job.size * min(job.work_seconds, at - job.slack_seconds)
        worst = max(worst, asked - capacity * (at - look_seconds))
    return worst
