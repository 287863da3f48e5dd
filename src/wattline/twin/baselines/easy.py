"""EASY backfill: may someone go ahead without making the head of the line wait longer?

Lifka's rule (1995), as most batch systems run it: the head alone has a reservation, by the limits that users
stated. GPUs are counted, not fitted to nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wattline.spec.policy import Policy
from wattline.state import Decision, Job, JobState, Place, Snapshot, seconds_left
from wattline.twin.baselines.packing import find_tightest, pool_of, pools_for
from wattline.twin.baselines.turn import Turn

# Who states no limit may run this long, as a queue's own limit would have it.
_ASSUMED_SECONDS = 7 * 86400.0
# How many that fit are asked whether they may go ahead; batch systems look about as far.
_DEPTH = 100


def decide_easy(snapshot: Snapshot, policy: Policy) -> Decision:
    turn = Turn(snapshot, policy)
    head: Job | None = None
    reservation: _Reservation | None = None
    kept_back = 0
    for job in turn.line():
        places = list(find_tightest(turn.draft, job.request))
        if not places:
            head = head or job
            turn.pass_over_alike()
            continue
        if head is None:
            turn.begin(job, places[0])
            continue
        # Worked out only once someone could go ahead: most of the time nobody can.
        reservation = reservation or _reserve(turn, head)
        allowed = next((place for place in places if reservation.allows(turn.draft, job, place)), None)
        if allowed is not None:
            turn.begin(job, allowed)
            continue
        kept_back += 1
        if kept_back >= _DEPTH:
            break
    return turn.decision()


@dataclass(slots=True)
class _Reservation:
    """When and where the head will start, and how many GPUs there it will not need then."""

    at: float
    pool: int
    spare: int

    def allows(self, draft: Snapshot, job: Job, place: Place) -> bool:
        """Whether a job may take this place now; what it takes of the spare GPUs is then taken."""
        if pool_of(draft.plant, place) != self.pool or draft.at + _longest_seconds(job) <= self.at:
            return True
        if job.request.gpus > self.spare:
            return False
        self.spare -= job.request.gpus
        return True


def _reserve(turn: Turn, head: Job) -> _Reservation:
    """The first moment when enough GPUs of a pool will be free, if all run as long as they may."""
    draft, found = turn.draft, []
    ends = _ends_by_pool(turn)
    for pool in pools_for(draft.plant, head.request):
        free, at = draft.free_in(pool), draft.at
        for ends_at, gpus in sorted(ends.get(pool, ())):
            if free >= head.request.gpus and ends_at > at:
                break
            free, at = free + gpus, ends_at
        spare = free - head.request.gpus
        found.append(_Reservation(at if spare >= 0 else math.inf, pool, max(0, spare)))
    return min(found, key=lambda reservation: reservation.at)


def _ends_by_pool(turn: Turn) -> dict[int, list[tuple[float, int]]]:
    """When each job that holds GPUs must have ended, and how many it gives back."""
    ends: dict[int, list[tuple[float, int]]] = {}
    for job in map(turn.draft.job, (*turn.draft.holding, *turn.begun)):
        if job.place is not None:
            begun_at = job.started_at if job.state is not JobState.STARTING else None
            ends_at = (job.since if begun_at is None else begun_at) + _longest_seconds(job)
            pool = pool_of(turn.draft.plant, job.place)
            ends.setdefault(pool, []).append((max(turn.draft.at, ends_at), job.request.gpus))
    return ends


def _longest_seconds(job: Job) -> float:
    left = seconds_left(job)
    return _ASSUMED_SECONDS if left is None else left
