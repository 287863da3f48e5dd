"""Readiness: when may a job that failed or was lost be tried again?"""

from __future__ import annotations

from wattline.spec.policy import Policy
from wattline.state import Ending, Job

_LONGEST_BACKOFF_SECONDS = 600.0
_MOST_DOUBLINGS = 30  # far beyond the longest backoff, and far below what a float holds


def when_ready(job: Job, policy: Policy) -> float:
    """A job that failed by its own doing waits longer each time; so does one that is lost again and again."""
    if not job.past:
        return 0.0
    times = max(job.restarts, _lost_soon(job) - 1)
    if times <= 0 or job.resumed_at >= job.since:  # a person who wants it to go on need not wait
        return 0.0
    first = policy.thresholds.restart_backoff
    doubled = first * 2.0 ** min(times - 1, _MOST_DOUBLINGS)
    return job.since + min(doubled, max(first, _LONGEST_BACKOFF_SECONDS))


def _lost_soon(job: Job) -> int:
    """How many attempts in a row, up to the last, were lost before they had run for long."""
    lost = 0
    for past in reversed(job.past):
        ran_seconds = 0.0 if past.began_at is None else past.ended_at - past.began_at
        if past.ending is not Ending.LOST or ran_seconds > _LONGEST_BACKOFF_SECONDS:
            break
        lost += 1
    return lost
