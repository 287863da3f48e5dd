"""Power parts: what does each job of a site take of its bounds, and which caps could it have?

Worked out anew only for jobs that changed, or of which something else is read. What they add up to is kept in
whole milliwatts: it is the same whatever came and went before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import is_
from typing import NamedTuple

from wattline.facility import Device
from wattline.policy.giving_way.capping import may_cap
from wattline.policy.watts.appetite import Appetite, is_rigid, menu_for, read_appetite
from wattline.policy.watts.dividing import Menu
from wattline.policy.watts.power_bounds import Bound, shares_of
from wattline.spec.policy import Policy
from wattline.state import Claim, Job, JobState, Snapshot

_MILLI = 1000.0
_SPEED_UNITS = 1e9  # sums of speeds are whole numbers, too


class Part(NamedTuple):
    """A job that holds GPUs here."""

    job: Job
    device: Device
    appetite: Appetite
    bounds: tuple[tuple[int, float], ...]
    menu: Menu | None = None  # None: its cap is not moved now
    level: int = 0  # of its menu, that it has now
    leaves_watts: float | None = None  # above idle, once it has left; None: it stays

    @property
    def gpus(self) -> int:
        return self.job.request.gpus

    @property
    def whole(self) -> Menu:
        """All its levels, never off."""
        assert self.menu is not None
        return self.menu.part(0, len(self.menu.levels) - 1)

    @property
    def above_idle_watts(self) -> float:
        return self.gpus * max(0.0, self.appetite.counted - self.device.idle_watts)

    def counts_as(self, other: Part) -> bool:
        """Whether nothing that is counted is different, whatever else is new of the job."""
        return self[1:] == other[1:] and self.job.place == other.job.place and self.gpus == other.gpus


class Settled(NamedTuple):
    """What was looked at when nothing was worth changing."""

    parts: list[Part]
    rest: object

    def is_as(self, other: Settled) -> bool:
        return (
            len(self.parts) == len(other.parts)
            and self.rest == other.rest
            and all(map(is_, self.parts, other.parts))
        )


class Parts:
    """Jobs that hold GPUs at one site, as they were at the last look, and what they add up to by bound."""

    def __init__(self, under: Sequence[int | None]) -> None:
        self.under = under  # resources of the bounds that all is counted for
        self.settled: Settled | None = None  # what the last look found nothing to change about
        self.restless: dict[str, None] = {}  # looked at every time
        self.nodes = 0  # of all, one for each job on it
        self.gpus = 0  # of those whose cap can be moved
        self.movable = 0  # so many of them
        self._of: dict[str, Part] = {}
        self._order: list[str] = []
        self._below: dict[str, None] = {}  # those that caps keep from full speed
        self._at: list[dict[str, None]] = [{} for _ in under]  # by bound, whose caps can be moved
        self._lacking = 0
        self._used, self._fixed, self._leaving, self._most = ([0] * len(under) for _ in range(4))

    def __iter__(self) -> Iterator[Part]:
        return map(self._of.__getitem__, self._order)

    def concerned(self, tight: Collection[int]) -> list[Part]:
        """Whose caps can be moved and either are under a tight bound or could be raised."""
        job_ids = set(self._below).union(*[self._at[number] for number in tight])
        return [self._of[job_id] for job_id in sorted(job_ids)]

    def under_any(self, bounds: Collection[int]) -> list[Part]:
        """Whose caps can be moved under any of these."""
        job_ids = set().union(*[self._at[number] for number in bounds])
        return [self._of[job_id] for job_id in sorted(job_ids)]

    @property
    def unsettled(self) -> list[Part]:
        """Those of which meters have not told all yet, and some others."""
        return [self._of[job_id] for job_id in self.restless]

    @property
    def are_capped(self) -> bool:
        return any(part.job.power_fraction < 1.0 for part in self)

    @property
    def used_watts(self) -> list[float]:
        return [amount / _MILLI for amount in self._used]

    @property
    def fixed_watts(self) -> list[float]:
        """Of these, what no cap that can be moved now is for."""
        return [amount / _MILLI for amount in self._fixed]

    @property
    def leaving_watts(self) -> list[float]:
        """Of these, what goes with those who are leaving."""
        return [amount / _MILLI for amount in self._leaving]

    @property
    def most_watts(self) -> list[float]:
        """What those whose caps can be moved would take on their way to full speed."""
        return [amount / _MILLI for amount in self._most]

    @property
    def lacking_speed(self) -> float:
        """GPUs' worth of work that caps keep these from."""
        return self._lacking / _SPEED_UNITS

    def put(self, job_id: str, part: Part | None, *, lasts: bool = True) -> None:
        """Count a job as it is now, and no more as it was; None: it is gone."""
        before = self._of.get(job_id)
        self.restless.pop(job_id, None)
        if part is not None and not lasts:
            self.restless[job_id] = None
        if part is not None and before is not None and part.counts_as(before):
            self._of[job_id] = part
            return
        if before is not None:
            self._add(before, -1)
        if part is None:
            del self._of[job_id]
            del self._order[bisect_left(self._order, job_id)]
            return
        if before is None:
            insort(self._order, job_id)
        self._of[job_id] = part
        self._add(part, 1)

    def _add(self, part: Part, sign: int) -> None:
        watts, most = part.above_idle_watts, 0.0
        if part.job.place is not None:
            self.nodes += sign * len(part.job.place.nodes)
        if part.menu is not None:
            whole = part.whole
            most = part.gpus * whole.watts(whole.top)
            lacking = whole.speed(whole.top) - whole.speed(part.level)
            self.gpus += sign * part.gpus
            self.movable += sign
            self._lacking += sign * round(_SPEED_UNITS * part.gpus * lacking)
            _mark(self._below, part.job.id, is_in=sign > 0 and lacking > 0.0)
            for number, _ in part.bounds:
                _mark(self._at[number], part.job.id, is_in=sign > 0)
        for number, share in part.bounds:
            amount = sign * round(_MILLI * share * watts)
            self._used[number] += amount
            if part.leaves_watts is not None:
                self._leaving[number] += amount - sign * round(_MILLI * share * part.leaves_watts)
            if part.menu is None:
                self._fixed[number] += amount
            else:
                self._most[number] += sign * round(_MILLI * share * most)


def _mark(marked: dict[str, None], job_id: str, *, is_in: bool) -> None:
    if is_in:
        marked[job_id] = None
    else:
        marked.pop(job_id, None)


class PowerParts:
    """The parts of all sites under one policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.sites: dict[str, Parts] = {}
        self._seen: dict[str, Job] = {}  # jobs that are known for as long as they stay as they are
        self._site_of: dict[str, str] = {}
        self._readings: dict[int, tuple[float, float]] = {}  # by node, what its jobs are known by

    @staticmethod
    def of(draft: Snapshot, policy: Policy) -> PowerParts:
        known = draft.lasting.get(PowerParts)
        if not isinstance(known, PowerParts) or known.policy is not policy:
            known = draft.lasting[PowerParts] = PowerParts(policy)
        return known

    def look(
        self, draft: Snapshot, bounds: Mapping[str, Sequence[Bound]], asked: Collection[str]
    ) -> Mapping[str, Parts]:
        """Bring all up to date; who was `asked` for something already is not moved."""
        for site, there in bounds.items():
            under = [bound.resource for bound in there]
            if site not in self.sites or self.sites[site].under != under:
                self._forget(site)
                self.sites[site] = Parts(under)
        for job_id in self._site_of.keys() - draft.holding.keys():
            self._drop(job_id)
        for job_id in sorted(self._find_news(draft, asked)):
            self._renew(draft, bounds, job_id, is_asked=job_id in asked)
        return self.sites

    def _find_news(self, draft: Snapshot, asked: Collection[str]) -> set[str]:
        holding, jobs, seen = draft.holding, draft.jobs, self._seen
        news = {job_id for job_id in holding if seen.get(job_id) is not jobs[job_id]}
        news.update([job_id for job_id in (*asked, *draft.altered) if job_id in holding])
        told, max_age = draft.conditions.node_gpu_watts, self.policy.thresholds.reading_max_age
        for node, reading in list(self._readings.items()):
            if told.get(node) is not reading or not draft.is_node_read(node, reading[1], max_age):
                del self._readings[node]
                news.update([job_id for job_id in draft.jobs_at(node) if job_id in holding])
        return news

    def _renew(
        self, draft: Snapshot, bounds: Mapping[str, Sequence[Bound]], job_id: str, *, is_asked: bool
    ) -> None:
        job = draft.job(job_id)
        place, claim = job.place, draft.claim(job_id)
        if place is None or place.site not in bounds or not job.request.gpus or claim is None:
            self._drop(job_id)
            return
        device = draft.plant.spots[claim.nodes[0][0]].node.device
        if device is None:
            self._drop(job_id)
            return
        if self._site_of.get(job_id, place.site) != place.site:
            self._drop(job_id)
        part = _part(draft, self.policy, bounds[place.site], job, claim, device, is_asked=is_asked)
        is_settled = part.appetite.is_read and not part.appetite.is_silent
        lasts = is_settled and not is_asked and not draft.flying(job_id) and job_id not in draft.altered
        self._site_of[job_id] = place.site
        self.sites[place.site].put(job_id, part, lasts=lasts)
        if not lasts:
            self._seen.pop(job_id, None)
            return
        self._seen[job_id] = job
        told = draft.conditions.node_gpu_watts
        self._readings.update([(node, told[node]) for node, _ in claim.nodes])

    def _drop(self, job_id: str) -> None:
        self._seen.pop(job_id, None)
        site = self._site_of.pop(job_id, None)
        if site is not None:
            self.sites[site].put(job_id, None)

    def _forget(self, site: str) -> None:
        for job_id in [job_id for job_id, there in self._site_of.items() if there == site]:
            self._drop(job_id)


def _part(
    draft: Snapshot,
    policy: Policy,
    bounds: Sequence[Bound],
    job: Job,
    claim: Claim,
    device: Device,
    *,
    is_asked: bool,
) -> Part:
    appetite = read_appetite(draft, policy, job, claim, device)
    under = shares_of(draft.plant, claim, bounds)
    off_watts = _off_watts(draft, policy, claim)
    if job.state is JobState.PAUSING and job.yields:
        return Part(job, device, appetite, under, leaves_watts=off_watts)
    is_movable = (
        job.state is JobState.RUNNING
        and job.rung < 0  # on a rung, its ladder decides
        and not is_asked
        and not draft.flying(job.id)
        and (appetite.is_read or policy.power_sharing.by == "caps")
        and not is_rigid(job, policy)
    )
    if not is_movable:
        return Part(job, device, appetite, under)
    off_each = off_watts / job.request.gpus if job.request.checkpoints else None
    menu = menu_for(policy, device, job.request, appetite.uncapped, off_each)
    if job.place is not None and not may_cap(draft.plant, job.place.site):
        menu = Menu(menu.levels[-1:], off_each)
    fractions = [level.fraction for level in menu.levels]
    level = max(0, bisect_right(fractions, job.power_fraction + 1e-9) - 1)
    return Part(job, device, appetite, under, menu, level)


def _off_watts(draft: Snapshot, policy: Policy, claim: Claim) -> float:
    """What a job's nodes would take beyond idle without it: less than nothing where they then sleep."""
    share_saved, spots = 1.0 - policy.power_sharing.asleep, draft.plant.spots
    return -share_saved * sum(
        [spots[node].node.idle_watts for node, gpus in claim.nodes if gpus == spots[node].node.gpus]
    )
