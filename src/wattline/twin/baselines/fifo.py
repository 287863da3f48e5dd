"""First come, first served: who is at the head of the line, and is there room for it?"""

from __future__ import annotations

from wattline.spec.policy import Policy
from wattline.state import Decision, Snapshot
from wattline.twin.baselines.packing import find_tightest
from wattline.twin.baselines.turn import Turn


def decide_fifo(snapshot: Snapshot, policy: Policy) -> Decision:
    """Strict: while the head does not fit, nobody behind it starts."""
    turn = Turn(snapshot, policy)
    for job in turn.line():
        place = next(find_tightest(turn.draft, job.request), None)
        if place is None:
            break
        turn.begin(job, place)
    return turn.decision()
