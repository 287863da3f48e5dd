"""Power-blind packing: is there a GPU free for anyone?"""

from __future__ import annotations

from wattline.spec.policy import Policy
from wattline.state import Decision, Snapshot
from wattline.twin.baselines.packing import find_tightest
from wattline.twin.baselines.turn import Turn


def decide_blind(snapshot: Snapshot, policy: Policy) -> Decision:
    """Whoever fits starts, in order of arrival, past those who do not. Nothing is capped or paused, ever."""
    turn = Turn(snapshot, policy)
    for job in turn.line():
        place = next(find_tightest(turn.draft, job.request), None)
        if place is None:
            turn.pass_over_alike()
        else:
            turn.begin(job, place)
    return turn.decision()
