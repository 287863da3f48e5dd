"""A frozen view of the state at a time, and what it would be after some actions.

A snapshot is no copy: it reads the state it was taken from and is good until that state changes.
`project` lays what actions would take over it, so every what-if costs what it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from wattline.state.account import Account, promise_of, week_of
from wattline.state.action import BEGINNINGS, Action, ActionKind
from wattline.state.claim import Claim, claim_of, peak_watts_on
from wattline.state.conditions import Conditions
from wattline.state.event import Usage
from wattline.state.job import Flight, Job, JobState, seconds_left
from wattline.state.plant import Plant
from wattline.state.state import State

replace = msgspec.structs.replace


class Snapshot:
    """What judges may look at. Reading it after the state has changed is an error."""

    __slots__ = ("_claimed", "_gpus", "_jobs", "_millicpus", "_promised", "_state", "_version", "at")

    def __init__(self, state: State, at: float) -> None:
        self.at = at
        self._state = state
        self._version = state.version
        self._claimed: dict[int, int] = {}
        self._gpus: dict[int, int] = {}
        self._millicpus: dict[int, int] = {}
        self._jobs: dict[str, Job] = {}
        self._promised: dict[str, Usage] = {}

    @property
    def plant(self) -> Plant:
        return self._state.plant

    @property
    def conditions(self) -> Conditions:
        return self._state.conditions

    @property
    def jobs(self) -> Mapping[str, Job]:
        return self._state.jobs

    @property
    def flights(self) -> Mapping[str, Flight]:
        return self._state.flights

    @property
    def holding(self) -> Iterable[str]:
        """Jobs that hold a claim."""
        return self._state.holding

    @property
    def restless(self) -> list[str]:
        """Jobs that changed, or that the last decision wants looked at again, by name."""
        return sorted(job_id for job_id in self._state.restless if job_id in self._state.holding)

    @property
    def touched_resources(self) -> Iterable[int]:
        return self._state.ledger.touched

    @property
    def touched_nodes(self) -> Iterable[int]:
        return self._state.conditions.touched

    def jobs_on(self, resource: int) -> Iterable[str]:
        return self._state.ledger.jobs_on[resource]

    def jobs_at(self, node: int) -> Iterable[str]:
        return self._state.ledger.jobs_at.get(node, ())

    def unread_resources(self, max_age_seconds: float) -> Iterator[int]:
        """Metered resources whose last reading is too old to be believed."""
        ledger = self._state.ledger
        for resource in ledger.read_order:
            read_at = ledger.drawn_at[resource]
            if read_at is None or self.at - read_at <= max_age_seconds:
                return
            yield resource

    def unread_nodes(self, max_age_seconds: float) -> Iterator[int]:
        """Nodes whose GPUs' last temperature or draw is too old to be believed."""
        for column in (self.conditions.node_celsius, self.conditions.node_gpu_watts):
            for node, (_, read_at) in column.items():
                if self.at - read_at <= max_age_seconds:
                    break
                yield node

    @property
    def paused(self) -> Iterable[str]:
        """Paused jobs, the longest first."""
        return sorted(self._state.paused, key=lambda job_id: self._state.jobs[job_id].order)

    def job(self, job_id: str) -> Job:
        self.check()
        return self._jobs.get(job_id) or self._state.jobs[job_id]

    def queues(self, max_age_seconds: float) -> Iterator[tuple[bool, list[tuple[float, float, str]]]]:
        """Waiting jobs by shape, and whether the shape is known not to fit.

        Not known any more: something was given back or cooled down, a new week began, or a reading that was
        too old to be believed has been replaced.
        """
        state = self._state
        known = (state.ledger.loosened, week_of(self.at))
        believed = state.doubted_seconds <= max_age_seconds
        for shape, queue in state.waiting.items():
            yield believed and state.stuck.get(shape) == known, queue

    def cap(self, resource: int) -> int:
        return self._state.ledger.caps[resource]

    def promised(self, resource: int) -> int:
        """What idle machines draw and what jobs were promised."""
        ledger = self._state.ledger
        claimed = ledger.claimed[resource] + self._claimed.get(resource, 0)
        return self.plant.resources[resource].idle + claimed

    def used(self, resource: int, max_age_seconds: float) -> float:
        """What is drawn or promised, whichever is more; a reading too old counts as the worst it could be."""
        ledger = self._state.ledger
        promised = self.promised(resource)
        if not ledger.metered[resource]:
            return float(promised)
        read_at = ledger.drawn_at[resource]
        if read_at is None or self.at - read_at > max_age_seconds:
            return float(max(promised, self.plant.resources[resource].worst))
        return max(float(promised), self._metered_watts(resource))

    def drawn(self, resource: int, max_age_seconds: float) -> float:
        """What is drawn now, for pressure: the meter's word, or the promise where there is no fresh one."""
        ledger = self._state.ledger
        read_at = ledger.drawn_at[resource]
        if read_at is None or self.at - read_at > max_age_seconds:
            return float(self.promised(resource))
        return self._metered_watts(resource)

    def gpus_free(self, node: int) -> int:
        return self._state.ledger.gpus_free[node] + self._gpus.get(node, 0)

    def cpus_free(self, node: int) -> float:
        return (self._state.ledger.millicpus_free[node] + self._millicpus.get(node, 0)) / 1000

    def nodes_with(self, site: str, device: str, free: int) -> Iterator[int]:
        """Nodes of a pool with so many GPUs free, overlay included."""
        for node in self._state.ledger.nodes_with(site, device, free):
            if node not in self._gpus:
                yield node
        for node in self._laid_on(site, device):
            if self.gpus_free(node) == free:
                yield node

    def biggest(self, site: str, device: str) -> int:
        return self._state.ledger.biggest(site, device)

    def free_in(self, site: str, device: str) -> tuple[int, int]:
        """GPUs free in a pool: on the node that has most of them, and on all."""
        counts = range(self.biggest(site, device) + 1)
        most = max(
            (free for free in counts if any(True for _ in self.nodes_with(site, device, free))), default=0
        )
        held = sum(free * len(self._state.ledger.nodes_with(site, device, free)) for free in counts)
        return most, held + sum(self._gpus[node] for node in self._laid_on(site, device))

    @property
    def rearranged(self) -> bool:
        """Whether the overlay changes which GPUs are free: what did not fit might fit among those."""
        return bool(self._gpus)

    def flying(self, job_id: str) -> bool:
        """Whether an action for this job has not been answered yet."""
        return job_id in self._state.flying

    def pools(self) -> list[tuple[str, str]]:
        return self._state.ledger.pools()

    def claim(self, job_id: str) -> Claim | None:
        return self._state.ledger.claims.get(job_id)

    def account(self, project: str) -> Account:
        account = self._state.accounts.get(project, Account()).at_week(week_of(self.at))
        extra = self._promised.get(project)
        return account if extra is None else replace(account, promised={**account.promised, "": extra})

    def check(self) -> None:
        if self._version != self._state.version:
            raise RuntimeError("this snapshot is of a state that has changed since")

    def copy(self) -> Snapshot:
        """The same view with an overlay of its own."""
        other = Snapshot(self._state, self.at)
        other._claimed = dict(self._claimed)
        other._gpus = dict(self._gpus)
        other._millicpus = dict(self._millicpus)
        other._jobs = dict(self._jobs)
        other._promised = dict(self._promised)
        return other

    def issue(self, action: Action) -> None:
        """Lay what an action takes when it is issued; what it gives back comes only with its outcome."""
        job = self.job(action.job)
        if action.kind is ActionKind.PAUSE:
            self._jobs[job.id] = replace(job, state=JobState.PAUSING)
        elif action.kind is ActionKind.STOP:
            self._jobs[job.id] = replace(job, state=JobState.STOPPING)
        elif action.kind is not ActionKind.CAP_POWER or action.fraction > job.power_fraction:
            self.lay(action)

    def lay(self, action: Action) -> None:
        """Add what one action changes once it is done to this view's overlay."""
        job = self.job(action.job)
        if action.kind in BEGINNINGS:
            assert action.place is not None
            claim = claim_of(job.request, action.place, self.plant, action.fraction)
            self._take(claim, 1)
            peak_watts = sum(
                peak_watts_on(job.request, self.plant, node, gpus, action.fraction)
                for node, gpus in claim.nodes
            )
            promise = promise_of(job.request, action.place, self.plant, peak_watts, seconds_left(job))
            project = job.request.project
            self._promised[project] = self._promised.get(project, Usage()).plus(promise)
            self._jobs[job.id] = replace(
                job, state=JobState.STARTING, place=action.place, attempt=action.attempt, since=self.at
            )
        elif action.kind in (ActionKind.PAUSE, ActionKind.STOP):
            held = self.claim(job.id)
            if held is not None:
                self._take(held, -1)
            self._jobs[job.id] = replace(job, state=JobState.PAUSED, since=self.at)
        elif action.kind is ActionKind.CAP_POWER and job.place is not None:
            held = self.claim(job.id)
            if held is not None:
                self._take(held, -1)
            self._take(claim_of(job.request, job.place, self.plant, action.fraction), 1)
            self._jobs[job.id] = replace(job, power_fraction=action.fraction)

    def _metered_watts(self, resource: int) -> float:
        """The meter's last word, less what the overlay gives back; what it takes is promised, not drawn."""
        return self._state.ledger.drawn[resource] + min(0, self._claimed.get(resource, 0))

    def _laid_on(self, site: str, device: str) -> Iterator[int]:
        """Nodes of a pool that the overlay changes."""
        for node in sorted(self._gpus):
            spot = self.plant.spots[node]
            name = spot.node.device.name if spot.node.device else ""
            if spot.site.name == site and name == device:
                yield node

    def _take(self, claim: Claim, sign: int) -> None:
        for resource, amount in claim.amounts:
            self._claimed[resource] = self._claimed.get(resource, 0) + sign * amount
        for node, gpus in claim.nodes:
            self._gpus[node] = self._gpus.get(node, 0) - sign * gpus
        first = claim.nodes[0][0]
        self._millicpus[first] = self._millicpus.get(first, 0) - sign * claim.millicpus


def project(snapshot: Snapshot, actions: Iterable[Action]) -> Snapshot:
    """What the snapshot would be once these were done."""
    after = snapshot.copy()
    for action in actions:
        after.lay(action)
    return after
