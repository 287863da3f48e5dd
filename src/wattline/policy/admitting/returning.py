"""Returning: how long must pressure have been gone before a job that gave way to it comes back to its site?

Who has to leave again soon after it came back draws more than it says, or makes its hall as hot as it was. To
bring it back at once, again and again, costs a save and a start each time and brings nothing forward.
"""

from __future__ import annotations

from wattline.spec.policy import Thresholds
from wattline.state import Ending, Job

_SOON = 10.0  # times `clear_for`: who ran for longer had come back for good
_MOST_DOUBLINGS = 6


def clear_seconds(job: Job, thresholds: Thresholds) -> float:
    """As the policy says; twice as long each time that it came back in vain."""
    doublings = max(0, count_short_stays(job, thresholds) - 1)
    return thresholds.clear_for * 2.0 ** min(doublings, _MOST_DOUBLINGS)


def count_short_stays(job: Job, thresholds: Thresholds) -> int:
    """How often in a row it had to pause at its site soon after it had begun there."""
    stays = 0
    for past in reversed(job.past):
        ran_seconds = past.ended_at - (past.ended_at if past.began_at is None else past.began_at)
        is_here = past.place is not None and job.place is not None and past.place.site == job.place.site
        if past.ending is not Ending.PAUSED or not is_here or ran_seconds >= _SOON * thresholds.clear_for:
            break
        stays += 1
    return stays
