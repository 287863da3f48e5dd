"""A frozen view of the state at a time, and what it would be after some actions.

A snapshot is no copy: it reads the state it was taken from and is good until that state changes.
`project` lays what actions would take over it, so every what-if costs what it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import msgspec

from wattline.state.account import NOTHING, Account, week_of
from wattline.state.action import BEGINNINGS, Action, ActionKind
from wattline.state.claim import Claim, claim_of
from wattline.state.ending import Usage
from wattline.state.event import Expected, Forecasted, Outlooked
from wattline.state.exceptions import PolicyException
from wattline.state.free_nodes import FreeNodes
from wattline.state.job import HOLDING, Flight, Job, JobState, seconds_left
from wattline.state.ledger import NEARLY_FULL_FRACTION, Ledger
from wattline.state.market import Readings, Reclaim, promise_at
from wattline.state.resting import NodeMode, Resting, saved_amounts
from wattline.state.standing import SiteRecord
from wattline.state.state import State

replace = msgspec.structs.replace

Stamp = tuple[int, int, int, float]

_LAYS = count(1)  # no two overlays have the same number


class Snapshot(FreeNodes):
    """What judges may look at. Reading it after the state has changed is an error."""

    __slots__ = (
        "_claimed",
        "_jobs",
        "_laid",
        "_promised",
        "_version",
        "_zones",
        "derived",
        "exceptions",
        "jobs",
    )

    def __init__(self, state: State, at: float) -> None:
        super().__init__(state, at)
        self.jobs: Mapping[str, Job] = state.jobs
        # By project, those that were approved; whoever reads them looks whether they have ended.
        self.exceptions: Mapping[str, tuple[PolicyException, ...]] = state.standing
        self._version = state.version
        self._claimed: dict[int, int] = {}
        self._jobs: dict[str, Job] = {}
        self._zones: set[int] = set()  # zones of racks over which something is laid
        self._laid: dict[int, int] = {}  # sites over which something is laid, with the last lay's number
        self._promised: dict[str, Usage] = {}
        # What judges worked out of each resource; void for those over which more is laid.
        self.derived: dict[int, float] | None = None

    @property
    def flights(self) -> Mapping[str, Flight]:
        return self._state.flights

    @property
    def holding(self) -> dict[str, None]:
        """Jobs that hold a claim, those that changed last at the end."""
        return self._state.holding

    @property
    def elastic(self) -> dict[str, None]:
        """Those of them that may run on fewer or more GPUs."""
        return self._state.elastic

    @property
    def restless(self) -> list[str]:
        """Jobs that the last decision wants looked at again, in no order."""
        holding = self._state.holding
        return [job_id for job_id in self._state.restless if job_id in holding]

    @property
    def changed(self) -> list[str]:
        """Jobs that hold a claim and have changed since the last decision, in no order."""
        holding = self._state.holding
        return [job_id for job_id in self._state.changed if job_id in holding]

    @property
    def touched_resources(self) -> set[int]:
        return self._ledger.touched

    @property
    def touched_nodes(self) -> set[int]:
        return self.conditions.touched

    def may_be_over(self, margin: float) -> set[int] | None:
        """All resources that can draw more than their cap less a margin; None: any may."""
        return self._ledger.nearly_full if margin <= 1.0 - NEARLY_FULL_FRACTION else None

    def jobs_on(self, resource: int) -> Iterable[str]:
        return self._ledger.jobs_on[resource]

    def jobs_at(self, node: int) -> Iterable[str]:
        return self._ledger.jobs_at.get(node, ())

    def job(self, job_id: str) -> Job:
        if self._version != self._state.version:
            self.check()
        return self._jobs.get(job_id) or self.jobs[job_id]

    @property
    def altered(self) -> Mapping[str, Job]:
        """Jobs that are laid over, as they would be."""
        return self._jobs

    def class_gpus(self, name: str) -> int:
        """GPUs that jobs of a class hold, with those that are about to."""
        before, held = self.jobs, self._state.gpus_of_class().get(name, 0)
        for job in self._jobs.values():
            if job.request.scheduling_class == name and job.state in HOLDING:
                held += 0 if before[job.id].state in HOLDING else job.request.gpus
        return held

    @property
    def accounts(self) -> Mapping[str, Account]:
        return self._state.accounts

    def is_loosened(self, site: str, max_age_seconds: float) -> bool:
        """Whether something at a site has more room than at the last decision, or may have.

        It may where a reading was replaced that was too old then to be believed.
        """
        number = self.plant.site_numbers[site]
        doubted_seconds = self._state.doubted_seconds.get(number, 0.0)
        return number in self._ledger.loosened or doubted_seconds > max_age_seconds

    def loosened_pools(self, max_age_seconds: float) -> list[int]:
        """Pools of all such sites."""
        doubted, sites = self._state.doubted_seconds, self._ledger.loosened
        if doubted:
            sites = {*sites, *[site for site, old in doubted.items() if old > max_age_seconds]}
        pools_of_site, clouds = self.plant.pools_of_site, self.plant.clouds
        if clouds:  # what is rented is no room of ours
            sites = {site for site in sites if self.plant.site_names[site] not in clouds}
        return [pool for site in sorted(sites) for pool in pools_of_site[site]]

    @property
    def lasting(self) -> dict[object, object]:
        """Where judges keep what they worked out from the state, with the stamps it was worked out at."""
        return self._state.derived

    def stamp(self, site: int, max_age_seconds: float) -> Stamp:
        """The same stamp means the same room everywhere at a site."""
        ledger = self._ledger
        if self._fresh[0] != max_age_seconds:
            self._vouch(max_age_seconds)
        too_old = 0
        for resource in ledger.mute_of_site[site]:
            read_at = ledger.drawn_at[resource]
            too_old += read_at is None or self.at - read_at > max_age_seconds
        # A site that does not vouch for its meters is another at every look.
        at = 0.0 if self._fresh[1][site] or not ledger.metered_site[site] else self.at
        return (ledger.site_changes[site], self._laid.get(site, 0), too_old, at)

    def site_changes(self, max_age_seconds: float) -> list[int] | None:
        """Counts what changed at each site: with the same count there is no more room than there was.

        None where that is not known: something is laid over, or a site does not vouch for its meters.
        """
        is_plain = not self._laid and self._silent_seconds <= max_age_seconds
        return self._ledger.site_changes if is_plain else None

    def rack_changes(self, rack: int) -> int:
        """Counts what changed in a rack; below zero, by its site's last lay, where one lies over it."""
        if rack not in self._claimed:
            return self._ledger.rack_changes[rack]
        return -self._laid[self.plant.site_number_of_resource[rack]]

    @property
    def plain_rack_changes(self) -> Sequence[int]:
        """The same by rack, whatever is laid over."""
        return self._ledger.rack_changes

    def zone_changes(self, zone: int) -> int:
        """Counts what changed in the racks of a zone; the same where something is laid over one of them."""
        if zone not in self._zones:
            return self._ledger.zone_changes[zone]
        return -self._laid[self.plant.zones[zone].site]

    def cap(self, resource: int) -> int:
        return self._ledger.caps[resource]

    def promised(self, resource: int) -> int:
        """What idle machines draw and what jobs were promised."""
        return self._ledger.promised[resource] + self._claimed.get(resource, 0)

    def books(self, max_age_seconds: float) -> tuple[Ledger, Mapping[int, int], bool]:
        """The ledger, what is laid over it, and whether all sites vouch for their meters: read only."""
        return self._ledger, self._claimed, self._silent_seconds <= max_age_seconds

    @property
    def laid_resources(self) -> Iterable[int]:
        """Resources over which something is laid."""
        return self._claimed

    def used(self, resource: int, max_age_seconds: float) -> float:
        """What is drawn or promised, whichever is more; a reading too old counts as the worst it could be."""
        ledger = self._ledger
        laid = self._claimed.get(resource, 0) if self._claimed else 0
        promised = ledger.promised[resource] + laid
        if not ledger.metered[resource]:
            return float(promised)
        if not self.is_read(resource, max_age_seconds):
            return float(max(promised, self.plant.resources[resource].worst))
        drawn = ledger.drawn[resource] + laid if laid < 0 else ledger.drawn[resource]
        return drawn if drawn > promised else float(promised)

    def drawn(self, resource: int, max_age_seconds: float) -> float:
        """What is drawn now, for pressure: the meter's word, or the promise where there is no fresh one.

        The meter's word less what the overlay gives back; what that takes is promised, not drawn.
        """
        if not self.is_read(resource, max_age_seconds):
            return float(self.promised(resource))
        laid = self._claimed.get(resource, 0) if self._claimed else 0
        return self._ledger.drawn[resource] + laid if laid < 0 else self._ledger.drawn[resource]

    def flying(self, job_id: str) -> bool:
        """Whether an action for this job has not been answered yet."""
        return job_id in self._state.flying

    @property
    def claims(self) -> Mapping[str, Claim]:
        """What each job holds."""
        return self._ledger.claims

    def claim(self, job_id: str) -> Claim | None:
        return self._ledger.claims.get(job_id)

    def account(self, project: str) -> Account:
        account = self._state.accounts.get(project, Account()).at_week(week_of(self.at))
        extra = self._promised.get(project)
        return account if extra is None else replace(account, promised=account.promised.plus(extra))

    def reading(self, subject: str, quantity: str) -> float | None:
        """What was last read of something, however long ago."""
        known = self._state.readings.get((subject, quantity))
        return known[0] if known is not None else None

    @property
    def outlooks(self) -> Mapping[str, Outlooked]:
        """The last of each site, however old."""
        return self._state.outlooks

    @property
    def readings(self) -> Readings:
        """The last of each meter, however old."""
        return self._state.readings

    @property
    def reclaims(self) -> Mapping[str, Reclaim]:
        """The last word on each machine of a cloud that was ever taken back."""
        return self._state.reclaims

    @property
    def sites(self) -> Mapping[str, SiteRecord]:
        """Those with an agent of their own."""
        return self._state.sites

    def agent_of(self, job: Job) -> SiteRecord | None:
        """The site that holds a job, where it has an agent; None: nobody else acts on it."""
        sites = self._state.sites
        return sites.get(job.place.site) if sites and job.place is not None else None

    def stranded_at(self, job: Job) -> str:
        """The site that has a job's checkpoint and cannot be reached now; empty where there is none."""
        sites = self._state.sites
        record = sites.get(job.saved.site) if sites and job.saved is not None else None
        return "" if record is None or record.takes_work else record.site

    @property
    def forecast(self) -> Forecasted | None:
        """The last one, however old."""
        return self._state.forecast

    def expected(self, job_id: str) -> Expected | None:
        """When the last forecast has a job start; None where it says nothing of the wait it is in now."""
        forecast, job = self._state.forecast, self.job(job_id)
        if forecast is None or (job.past and job.past[-1].ended_at > forecast.at):
            return None
        return next((expected for expected in forecast.starts if expected.job == job_id), None)

    def check(self) -> None:
        if self._version != self._state.version:
            raise RuntimeError("this snapshot is of a state that has changed since")

    def copy(self) -> Snapshot:
        """The same view with an overlay of its own."""
        other = Snapshot(self._state, self.at)
        other.exceptions = self.exceptions
        if not self._jobs and not self._claimed:
            return other
        other._claimed = dict(self._claimed)
        self._copy_nodes(other)
        other._jobs = dict(self._jobs)
        other._laid, other._zones = dict(self._laid), set(self._zones)
        other._promised = dict(self._promised)
        return other

    def issue(self, action: Action) -> None:
        """Lay what an action takes when it is issued; what it gives back comes only with its outcome."""
        if action.node:
            return  # who wakes or falls asleep was laid by whoever decided it
        job = self.job(action.job)
        if action.kind is ActionKind.PAUSE:
            self._jobs[job.id] = replace(job, state=JobState.PAUSING)
        elif action.kind is ActionKind.STOP:
            self._jobs[job.id] = replace(job, state=JobState.STOPPING)
        elif action.kind is not ActionKind.CAP_POWER or action.fraction > job.power_fraction:
            self.lay(action)

    def keep(self, claim: Claim, sign: int = 1) -> None:
        """Lay what is kept free for somebody, so that nobody else takes it; or let go of it again."""
        self._take(claim, sign)

    def keep_amounts(self, site: int, amounts: Iterable[tuple[int, int]]) -> None:
        """Lay what is kept free of a site's resources alone, GPUs and CPUs left as they are."""
        for resource, amount in amounts:
            self._claimed[resource] = self._claimed.get(resource, 0) + amount
            self._zones.update(self.plant.zones_of_rack.get(resource, ()))
            if self.derived is not None:
                self.derived.pop(resource, None)
            self._laid[site] = next(_LAYS)

    def rouse(self, node: int) -> None:
        """Lay a node that rests as if it were awake; one that sleeps takes its idle watts again."""
        sleeps = node in self._state.resting.modes[NodeMode.ASLEEP]
        amounts = [(one, watts if sleeps else 0) for one, watts in saved_amounts(self.plant, node)]
        self._take(Claim(nodes=((node, 0),), millicpus=0, amounts=tuple(amounts), gpu_watts=0.0), 1)
        self._rouse_node(node)

    @property
    def resting(self) -> Resting:
        """Which nodes sleep, which could, and who came lately: read only."""
        return self._state.resting

    def is_metered(self, resource: int) -> bool:
        """Whether something reads what a resource carries; elsewhere only claims are known."""
        return self._ledger.metered[resource]

    def read_at(self, resource: int) -> float | None:
        """When a draw was last known: read then, or vouched for since."""
        return self._ledger.read_at(resource)

    def is_confirmed(self, node: int, max_age_seconds: float) -> bool:
        """Whether all that carries a node and has a meter was read lately enough."""
        spot, metered = self.plant.spots[node], self._ledger.metered
        above = [resource for resource, _ in spot.power] + [spot.loop_resource]
        return all(not metered[one] or self.is_read(one, max_age_seconds) for one in above)

    def saved(self, resource: int) -> int:
        """Watts that sleeping nodes leave of what they draw idle."""
        return self._ledger.saved.get(resource, 0)

    def lay(self, action: Action) -> None:
        """Add what one action changes once it is done to this view's overlay."""
        if action.node:
            return
        job = self.job(action.job)
        if action.kind in BEGINNINGS:
            assert action.place is not None
            if job.request.elastic is not None:
                job = replace(job, request=job.request.at_width(action.place.gpus))
            if action.mode:
                job = replace(job, mode=action.mode)
            claim = claim_of(job.request, action.place, self.plant, action.fraction)
            self._take(claim, 1)
            left, saved = seconds_left(job), job.saved
            promise = promise_at(
                self.readings, self.plant, job.request, action.place, action.fraction, left, saved
            )
            if promise is not NOTHING:
                project = job.request.project
                self._promised[project] = self._promised.get(project, NOTHING).plus(promise)
            self._jobs[job.id] = replace(
                job, state=JobState.STARTING, place=action.place, attempt=action.attempt, since=self.at
            )
        elif action.kind in (ActionKind.PAUSE, ActionKind.STOP):
            self.lay_end(job)
        elif action.kind is ActionKind.CAP_POWER and job.place is not None:
            held = self.claim(job.id)
            if held is not None:
                self._take(held, -1)
            self._take(claim_of(job.request, job.place, self.plant, action.fraction), 1)
            self._jobs[job.id] = replace(job, power_fraction=action.fraction)

    def lay_end(self, job: Job) -> None:
        """What a job gives back once it has left, of its own or because it was told to."""
        held = self.claim(job.id)
        if held is not None:
            self._take(held, -1)
        self._jobs[job.id] = replace(job, state=JobState.PAUSED, since=self.at)

    def _take(self, claim: Claim, sign: int) -> None:
        claimed, derived = self._claimed, self.derived
        for resource, amount in claim.amounts:
            claimed[resource] = claimed.get(resource, 0) + sign * amount
            if derived is not None:
                derived.pop(resource, None)
        for node, gpus in claim.nodes:
            self._take_gpus(node, sign * gpus)
            self._zones.update(self.plant.zones_of_rack[self.plant.spots[node].power[0][0]])
        first = claim.nodes[0][0]
        self._laid[self.plant.site_number_of_node[first]] = next(_LAYS)
        self._millicpus[first] = self._millicpus.get(first, 0) - sign * claim.millicpus


def project(snapshot: Snapshot, actions: Iterable[Action]) -> Snapshot:
    """What the snapshot would be once these were done."""
    after = snapshot.copy()
    for action in actions:
        after.lay(action)
    return after
