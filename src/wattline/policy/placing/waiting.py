"""Waiting: which of those who run must have ended before a job fits, if each runs as long as it may?

Ends are kept in order with the state, so that an answer costs what it looks at and not all that runs.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from itertools import islice

import msgspec

from wattline.policy.headroom.freeing import AtSite, End, Fitting, Freed, Upcoming
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
_MANY_GONE = 64  # … and among the first, once somebody had to pass over so many


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
    freed = Freed(snapshot, policy)
    ended = _Ended(freed, near)
    seekers = [_Seeker(freed, ended, request) for request in (requests if most else requests[:1])]
    seeking = list(seekers)
    at_sites = _by_site(seeking)
    for upcoming in islice(Ends.of(snapshot).upcoming(snapshot), _MOST_ENDS):
        site = upcoming[2].site
        there = at_sites.get(site)
        if there is None or not freed.add(upcoming):
            continue
        for seeker, room in there:
            if not room.has_enough() or not seeker.wants(site) or not seeker.finds(site, room.pools()):
                continue
            if seeker is seekers[0]:
                return _found(seekers, requests)
            is_enough = len(seekers) - len(seeking) + 1 == most
            for leaving in seeking[1:] if is_enough else [seeker]:
                seeking.remove(leaving)
                leaving.fitting.close()
            at_sites = _by_site(seeking)
            if is_enough:
                break
    return _found(seekers, requests)


def _found(seekers: Sequence[_Seeker], requests: Sequence[JobRequest]) -> list[Wait | None]:
    """Of those for whom nobody looked, nothing was found."""
    return [*[one.found for one in seekers], *[None] * (len(requests) - len(seekers))]


def _by_site(seekers: Sequence[_Seeker]) -> dict[str, list[tuple[_Seeker, AtSite]]]:
    """Who asks for room at each site: where nobody does, no end matters."""
    found: dict[str, list[tuple[_Seeker, AtSite]]] = {}
    for seeker in seekers:
        for site, there in seeker.fitting.sites.items():
            found.setdefault(site, []).append((seeker, there))
    return found


class _Ended:
    """What there is at each site once so many have ended there."""

    def __init__(self, freed: Freed, near: str | None) -> None:
        self._freed, self._near = freed, near
        self._after: dict[str, tuple[int, Snapshot]] = {}  # by site: once so many of them have ended

    def pool_of(self, place: Place) -> int:
        return self._freed.snapshot.plant.pool_of(place.nodes[0][0])

    def count(self, site: str) -> int:
        return len(self._freed.ended[site])

    def find(self, request: JobRequest, site: str, count: int, pools: Sequence[int]) -> Wait | None:
        """A place in these pools of a site once so many there have ended; what is said was laid out."""
        after, policy = self._project(site, count), self._freed.policy
        place = choose_place(
            after, policy, request, near=self._near, only=pools, explain=False, judge=False, roomy=True
        ).place
        if place is None or not is_carried(after, policy, request, place):
            return None
        ends_at, last, _ = self._freed.ended[site][count - 1]
        return Wait(last, ends_at, place)

    def _project(self, site: str, count: int) -> Snapshot:
        """What was laid out for fewer ends is gone on with: each is laid out once."""
        before = self._freed.snapshot
        done, after = self._after.get(site, (0, before))
        if done == count:
            return after
        if done > count:
            done, after = 0, before
        if not done:
            after = after.copy()
        for _, _, end in self._freed.ended[site][done:count]:
            after.keep(end.claim, -1)
        if not done:
            carry_headroom(before, after, self._freed.policy.thresholds)
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

    def wants(self, site: str) -> bool:
        """Whether it is tried after this end: the first after which there may be room is, then one after half
        as many more.
        """
        return self._tries < _MOST_TRIES and self._ended.count(site) >= self._wanted.get(site, 0)

    def finds(self, site: str, pools: Sequence[int]) -> bool:
        """Whether there is room for it at a site after all who ended there, in pools where there may be."""
        if not pools:
            return False
        count = self._ended.count(site)
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

    __slots__ = ("_given", "_order", "_passed", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Job, float]] = {}
        self._given: dict[str, Upcoming] = {}  # of those that were asked for
        self._order: list[tuple[float, str]] = []
        self._passed = 0  # of these, from the first, were looked at by somebody who met many that are gone

    @staticmethod
    def of(snapshot: Snapshot) -> Ends:
        found = snapshot.lasting.get(Ends)
        if not isinstance(found, Ends):
            found = snapshot.lasting[Ends] = Ends()
        return found

    def upcoming(self, snapshot: Snapshot) -> Iterator[Upcoming]:
        self.keep_up(snapshot)
        claims, given, gone = snapshot.claims, self._given, 0
        for position, (ends_at, job_id) in enumerate(self._order):
            known, claim = given.get(job_id), claims.get(job_id)
            # Who holds the same claim as before holds it as long as before: else it was seen to change.
            if known is None or known[2].claim is not claim or known[0] != ends_at:
                job = snapshot.jobs.get(job_id)
                if not self._is_coming(job, ends_at):
                    gone += 1
                    if gone >= _MANY_GONE:
                        self._passed = position + 1
                    continue
                assert job is not None
                if claim is None or job.place is None:
                    continue
                end = End.of(snapshot.plant, job.place.site, claim)
                known = given[job_id] = (ends_at, job_id, end)
            yield known

    def keep_up(self, snapshot: Snapshot) -> None:
        """Whoever changes comes last among those who hold: the first that did not change ends the search."""
        holding = snapshot.holding
        if max(len(self._order), len(self._seen)) > 2 * len(holding) + _FEW:
            self._forget(holding)
        if self._passed:
            self._forget_passed(snapshot)
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
            if seen is not None and seen[1] != ends_at:
                self._given.pop(job_id, None)
            if ends_at == math.inf:
                continue
            if is_new:
                self._order.append((ends_at, job_id))
            elif seen is None or seen[1] != ends_at:
                self._enter((ends_at, job_id))
        if is_new:
            self._order.sort()

    def _enter(self, entry: tuple[float, str]) -> None:
        """An end that is set again as it was before is there already."""
        position = bisect_left(self._order, entry)
        if self._order[position : position + 1] != [entry]:
            self._order.insert(position, entry)

    def _is_coming(self, job: Job | None, ends_at: float) -> bool:
        """Whether a job still holds what it will give back, until then."""
        return job is not None and job.state in HOLDING and self._seen[job.id][1] == ends_at

    def _forget(self, holding: Container[str]) -> None:
        """Drop those that are gone, and ends that were set anew."""
        self._seen = {job_id: known for job_id, known in self._seen.items() if job_id in holding}
        self._given = {job_id: known for job_id, known in self._given.items() if job_id in holding}
        ends_at = {job_id: known[1] for job_id, known in self._seen.items()}
        self._order = [end for end in self._order if ends_at.get(end[1]) == end[0]]
        self._passed = 0

    def _forget_passed(self, snapshot: Snapshot) -> None:
        """The same of the first of them: who ends before time is passed over by all who ask after that."""
        kept: list[tuple[float, str]] = []
        for ends_at, job_id in self._order[: self._passed]:
            job = snapshot.jobs.get(job_id)
            if self._is_coming(job, ends_at):
                kept.append((ends_at, job_id))
            elif job is None or job.state not in HOLDING:
                self._seen.pop(job_id, None)
                self._given.pop(job_id, None)
        self._order[: self._passed] = kept
        self._passed = 0
