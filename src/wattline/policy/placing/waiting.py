"""Waiting: which of those who run must have ended before a job fits, if each runs as long as it may?

Ends are kept in order with the state, so that an answer costs what it looks at and not all that runs.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Container, Iterator, Sequence
from itertools import islice

import msgspec

from wattline.policy.headroom.freeing import AtSite, End, Fitting, Freed
from wattline.policy.headroom.power import carry_headroom
from wattline.policy.placing.offering import is_carried
from wattline.policy.placing.placement import choose_place
from wattline.spec.policy import Policy
from wattline.state import HOLDING, Job, JobRequest, Place, Snapshot, seconds_left

# So many ends are looked ahead: behind more of them, a wait says little.
_MOST_ENDS = 256
# Where there seems to be room and there is none, heat or a budget is in the way: that is not asked for ever.
_MOST_TRIES = 16
_FEW = 1024  # entries of jobs that are gone are dropped once there are more, and more than half


class Wait(msgspec.Struct, frozen=True):
    """The last that must have ended, and the place that carries the job then."""

    last: str
    ends_at: float
    place: Place


def find_wait(snapshot: Snapshot, policy: Policy, request: JobRequest, near: str | None) -> Wait | None:
    """After which end there is room for a job; None where the next ends are not enough."""
    return find_waits(snapshot, policy, [request], near)[0]


def find_waits(
    snapshot: Snapshot, policy: Policy, requests: Sequence[JobRequest], near: str | None, most: int = 0
) -> list[Wait | None]:
    """The same for the first of these, and for others for which there is room sooner: for `most` of them at
    most, those that start soonest.
    """
    freed, ended = Freed(snapshot, policy), _Ended(snapshot, policy, near)
    seekers = [_Seeker(freed, ended, request) for request in requests]
    seeking = list(seekers if most else seekers[:1])
    at_sites = _by_site(seeking)
    for ends_at, job, end in islice(Ends.of(snapshot).upcoming(snapshot), _MOST_ENDS):
        there = at_sites.get(end.site)
        if there is None:
            continue
        freed.add(end)
        ended.add(end.site, ends_at, job)
        for seeker, room in there:
            if not room.has_enough(end) or not seeker.finds(end.site, room.pools()):
                continue
            if seeker is seekers[0]:
                return [one.found for one in seekers]
            seeking.remove(seeker)
            is_enough = len(seekers) - len(seeking) == most
            if is_enough:
                seeking = seekers[:1]
            at_sites = _by_site(seeking)
            if is_enough:
                break
    return [one.found for one in seekers]


def _by_site(seekers: Sequence[_Seeker]) -> dict[str, list[tuple[_Seeker, AtSite]]]:
    """Who asks for room at each site: where nobody does, no end matters."""
    found: dict[str, list[tuple[_Seeker, AtSite]]] = {}
    for seeker in seekers:
        for site, there in seeker.fitting.sites.items():
            found.setdefault(site, []).append((seeker, there))
    return found


class _Ended:
    """Who has ended so far at each site, and what there is then."""

    def __init__(self, snapshot: Snapshot, policy: Policy, near: str | None) -> None:
        self._snapshot, self._policy, self._near = snapshot, policy, near
        self._by_site: dict[str, list[tuple[float, Job]]] = {}
        self._after: dict[str, tuple[int, Snapshot]] = {}  # by site: once so many of them have ended

    def add(self, site: str, ends_at: float, job: Job) -> None:
        self._by_site.setdefault(site, []).append((ends_at, job))

    def pool_of(self, place: Place) -> int:
        return self._snapshot.plant.pool_of(place.nodes[0][0])

    def count(self, site: str) -> int:
        return len(self._by_site[site])

    def find(self, request: JobRequest, site: str, count: int, pools: Sequence[int]) -> Wait | None:
        """A place in these pools of a site once so many there have ended; what is said was laid out."""
        after, policy = self._project(site, count), self._policy
        place = choose_place(
            after, policy, request, near=self._near, only=pools, explain=False, judge=False, roomy=True
        ).place
        if place is None or not is_carried(after, policy, request, place):
            return None
        ends_at, last = self._by_site[site][count - 1]
        return Wait(last.id, ends_at, place)

    def _project(self, site: str, count: int) -> Snapshot:
        """What was laid out for fewer ends is gone on with: each is laid out once."""
        done, after = self._after.get(site, (0, self._snapshot))
        if done == count:
            return after
        if done > count:
            done, after = 0, self._snapshot
        if not done:
            after = after.copy()
        for _, job in self._by_site[site][done:count]:
            after.lay_end(job)
        if not done:
            carry_headroom(self._snapshot, after, self._policy.thresholds)
        self._after[site] = (count, after)
        return after


class _Seeker:
    """One request, and the first end after which there is room for it."""

    def __init__(self, freed: Freed, ended: _Ended, request: JobRequest) -> None:
        self._ended, self._request, self.fitting = ended, request, Fitting(freed, request)
        self._failed: dict[str, int] = {}  # by site: after so many ends it was tried in vain
        self._wanted: dict[str, int] = {}  # by site: ends after which it is tried again
        self._tries = 0
        self.found: Wait | None = None

    def finds(self, site: str, pools: Sequence[int]) -> bool:
        """Whether there is room for it at a site after all who ended there, in pools where there may be.

        The first end after which there may be is tried, then one after half as many more.
        """
        count = self._ended.count(site)
        if not pools or self._tries >= _MOST_TRIES or count < self._wanted.get(site, 0):
            return False
        self._tries += 1
        found = self._ended.find(self._request, site, count, pools)
        if found is None:
            self._failed[site], self._wanted[site] = count, count + max(1, count // 2)
            return False
        self.found = self._sooner(site, count, found) if site in self._failed else found
        return True

    def _sooner(self, site: str, enough: int, found: Wait) -> Wait:
        """As few of these ends as do: of many, a few more or less say the same."""
        pools, too_few = [self._ended.pool_of(found.place)], self._failed[site]
        while enough - too_few > max(1, enough // 8):
            middle = (too_few + enough) // 2
            fewer = self._ended.find(self._request, site, middle, pools)
            if fewer is None:
                too_few = middle
            else:
                found, enough = fewer, middle
        return found


class Ends:
    """When each job that set an end will have ended at the latest, the first first, and what it gives back
    then; kept with the state.
    """

    __slots__ = ("_given", "_order", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Job, float]] = {}
        self._given: dict[str, End] = {}  # of those that were asked for
        self._order: list[tuple[float, str]] = []

    @staticmethod
    def of(snapshot: Snapshot) -> Ends:
        found = snapshot.lasting.get(Ends)
        if not isinstance(found, Ends):
            found = snapshot.lasting[Ends] = Ends()
        return found

    def upcoming(self, snapshot: Snapshot) -> Iterator[tuple[float, Job, End]]:
        self.keep_up(snapshot)
        jobs, seen, given = snapshot.jobs, self._seen, self._given
        for ends_at, job_id in self._order:
            job, claim = jobs.get(job_id), snapshot.claim(job_id)
            if job is None or job.state not in HOLDING or seen[job_id][1] != ends_at:
                continue
            if claim is None or job.place is None:
                continue
            end = given.get(job_id)
            if end is None or end.claim is not claim:
                end = given[job_id] = End.of(job.place.site, claim)
            yield ends_at, job, end

    def keep_up(self, snapshot: Snapshot) -> None:
        """Whoever changes comes last among those who hold: the first that did not change ends the search."""
        holding = snapshot.holding
        if max(len(self._order), len(self._seen)) > 2 * len(holding) + _FEW:
            self._forget(holding)
        is_new = not self._order
        for job_id in reversed(holding):
            job, seen = snapshot.jobs[job_id], self._seen.get(job_id)
            if seen is not None and seen[0] is job:
                break
            seconds = seconds_left(job)
            ends_at = math.inf  # it set no end, or has not begun
            if job.started_at is not None and seconds is not None:
                ends_at = job.started_at + seconds
            self._seen[job_id] = (job, ends_at)
            if ends_at == math.inf:
                continue
            if is_new:
                self._order.append((ends_at, job_id))
            elif seen is None or seen[1] != ends_at:
                insort(self._order, (ends_at, job_id))
        if is_new:
            self._order.sort()

    def _forget(self, holding: Container[str]) -> None:
        """Drop those that are gone, and ends that were set anew."""
        self._seen = {job_id: known for job_id, known in self._seen.items() if job_id in holding}
        self._given = {job_id: end for job_id, end in self._given.items() if job_id in holding}
        ends_at = {job_id: known[1] for job_id, known in self._seen.items()}
        self._order = [end for end in self._order if ends_at.get(end[1]) == end[0]]
