"""Waiting: which of those who run must have ended before a job fits, if each runs as long as it may?

Ends are kept in order with the state, so that an answer costs what it looks at and not all that runs.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Iterator, Sequence
from itertools import islice

import msgspec

from wattline.policy.loosening import Loosened
from wattline.policy.naming import next_action
from wattline.policy.placement import choose_place
from wattline.policy.pools import pools_for
from wattline.policy.power import headroom_of
from wattline.policy.rooms import Rooms
from wattline.spec.policy import Policy
from wattline.state import (
    HOLDING,
    ActionKind,
    Job,
    JobRequest,
    Place,
    Snapshot,
    project,
    seconds_left,
)

# So many ends are looked ahead: behind more of them, a wait says little.
_MOST_ENDS = 256
_FEW = 1024  # entries of jobs that are gone are dropped once there are more, and more than half


class Wait(msgspec.Struct, frozen=True):
    """The last that must have ended, and what there is then."""

    last: str
    ends_at: float
    place: Place
    after: Snapshot


def find_wait(snapshot: Snapshot, policy: Policy, request: JobRequest, near: str | None) -> Wait | None:
    """By a quarter more ends each time, then back to as few as do; None where the next ends are not enough.

    Before there are as many GPUs and watts as it takes, nothing is tried.
    """
    freed = _Freed(snapshot, policy, request)
    ends: list[tuple[float, Job]] = []
    too_few, wanted = 0, 1
    for end in islice(Ends.of(snapshot).upcoming(snapshot), _MOST_ENDS):
        ends.append(end)
        if not freed.add(end[1]) or len(ends) < wanted:
            continue
        found = _after(snapshot, policy, request, near, ends, freed.pools())
        if found is not None:
            return _sooner(snapshot, policy, request, near, ends, too_few, found)
        too_few, wanted = len(ends), len(ends) + max(1, len(ends) // 4)
    return None


def _sooner(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    near: str | None,
    ends: list[tuple[float, Job]],
    too_few: int,
    found: Wait,
) -> Wait:
    """As few of these ends as do: of many, a few more or less say the same."""
    pools, enough = [snapshot.plant.pool_of(found.place.nodes[0][0])], len(ends)
    while enough - too_few > max(1, enough // 8):
        middle = (too_few + enough) // 2
        fewer = _after(snapshot, policy, request, near, ends[:middle], pools)
        if fewer is None:
            too_few = middle
        else:
            found, enough = fewer, middle
    return found


def _after(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    near: str | None,
    ends: list[tuple[float, Job]],
    pools: Sequence[int],
) -> Wait | None:
    """A place in these pools once those have ended who run at their sites."""
    sites = {snapshot.plant.pools[pool][0] for pool in pools}
    there = [(at, job) for at, job in ends if job.place is not None and job.place.site in sites]
    if not there:
        return None
    after = project(snapshot, [next_action(job, ActionKind.STOP) for _, job in there])
    if not Loosened(after, policy, pools).may_fit(request):
        return None
    place = choose_place(after, policy, request, near=near, only=pools, explain=False).place
    ends_at, last = there[-1]
    return None if place is None else Wait(last.id, ends_at, place, after)


class _Freed:
    """In which pools are there as many GPUs, and watts above all of them, as a job asks for?"""

    def __init__(self, snapshot: Snapshot, policy: Policy, request: JobRequest) -> None:
        self._snapshot, self._gpus = snapshot, request.gpus
        plant, headroom = snapshot.plant, headroom_of(snapshot, policy.thresholds)
        rooms = Rooms.of(snapshot, policy.thresholds)
        self._free: dict[int, int] = {}  # by pool
        self._short: dict[int, dict[int, float]] = {}  # by pool: of what is above all of it, what is missing
        self._sites: set[str] = set()
        for _, pool in pools_for(plant, policy, request):
            watts = request.gpus * rooms.room(snapshot, headroom, request, pool).each_watts
            missing = {one: watts * share - headroom[one] for one, share in plant.common_above[pool]}
            self._short[pool] = {one: short for one, short in missing.items() if short > 0.0}
            self._free[pool] = snapshot.free_in(pool)
            self._sites.add(plant.pools[pool][0])

    def add(self, job: Job) -> bool:
        """One more has ended; whether there may be a pool by now that it helps."""
        if job.place is None or job.place.site not in self._sites:
            return False
        claim = self._snapshot.claim(job.id)
        if claim is None:
            return False
        pool, amounts = self._snapshot.plant.pool_of(job.place.nodes[0][0]), dict(claim.amounts)
        if pool in self._free:
            self._free[pool] += sum(gpus for _, gpus in claim.nodes)
        for short in self._short.values():
            for one in [one for one in short if one in amounts]:
                short[one] -= amounts[one]
                if short[one] <= 0.0:
                    del short[one]
        return any(self._is_enough(pool) for pool in self._free)

    def pools(self) -> list[int]:
        return [pool for pool in self._free if self._is_enough(pool)]

    def _is_enough(self, pool: int) -> bool:
        return not self._short[pool] and self._free[pool] >= self._gpus


class Ends:
    """When each job that set an end will have ended at the latest, the first first; kept with the state."""

    __slots__ = ("_order", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Job, float]] = {}
        self._order: list[tuple[float, str]] = []

    @staticmethod
    def of(snapshot: Snapshot) -> Ends:
        found = snapshot.lasting.get(Ends)
        if not isinstance(found, Ends):
            found = snapshot.lasting[Ends] = Ends()
        return found

    def upcoming(self, snapshot: Snapshot) -> Iterator[tuple[float, Job]]:
        self._catch_up(snapshot)
        for ends_at, job_id in self._order:
            job = snapshot.jobs.get(job_id)
            if job is not None and job.state in HOLDING and self._seen[job_id][1] == ends_at:
                yield ends_at, job

    def _catch_up(self, snapshot: Snapshot) -> None:
        """Whoever changes comes last among those who hold: the first that did not change ends the search."""
        holding = snapshot.holding
        if len(self._order) > 2 * len(holding) + _FEW:
            self._forget(holding)
        is_new = not self._order
        for job_id in reversed(holding):
            job, seen = snapshot.jobs[job_id], self._seen.get(job_id)
            if seen is not None and seen[0] is job:
                break
            seconds = seconds_left(job)
            if job.started_at is None or seconds is None:
                continue
            ends_at = job.started_at + seconds
            self._seen[job_id] = (job, ends_at)
            if is_new:
                self._order.append((ends_at, job_id))
            elif seen is None or seen[1] != ends_at:
                insort(self._order, (ends_at, job_id))
        if is_new:
            self._order.sort()

    def _forget(self, holding: Container[str]) -> None:
        """Drop those that are gone, and ends that were set anew."""
        self._seen = {job_id: known for job_id, known in self._seen.items() if job_id in holding}
        ends_at = {job_id: known[1] for job_id, known in self._seen.items()}
        self._order = [end for end in self._order if ends_at.get(end[1]) == end[0]]
