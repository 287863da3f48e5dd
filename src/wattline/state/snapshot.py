"""A frozen view of the state at a time, and what it would be after some actions.

A snapshot is no copy: it reads the state it was taken from and is good until that state changes.
`project` lays what actions would take over it, so every what-if costs what it changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from wattline.state.account import Account, promise_of, week_of
from wattline.state.action import BEGINNINGS, Action, ActionKind
from wattline.state.claim import Claim, claim_of, peak_watts_on
from wattline.state.event import Usage
from wattline.state.job import Flight, Job, JobState, seconds_left
from wattline.state.state import State
from wattline.state.tables import Stuck

replace = msgspec.structs.replace

Queue = list[tuple[float, float, str]]


class Snapshot:
    """What judges may look at. Reading it after the state has changed is an error."""

    __slots__ = (
        "_claimed",
        "_gpus",
        "_jobs",
        "_ledger",
        "_millicpus",
        "_promised",
        "_state",
        "_version",
        "at",
        "conditions",
        "jobs",
        "plant",
    )

    def __init__(self, state: State, at: float) -> None:
        self.at = at
        self.plant = state.plant
        self.conditions = state.conditions
        self.jobs: Mapping[str, Job] = state.jobs
        self._state = state
        self._ledger = state.ledger
        self._version = state.version
        self._claimed: dict[int, int] = {}
        self._gpus: dict[int, int] = {}
        self._millicpus: dict[int, int] = {}
        self._jobs: dict[str, Job] = {}
        self._promised: dict[str, Usage] = {}

    @property
    def flights(self) -> Mapping[str, Flight]:
        return self._state.flights

    @property
    def holding(self) -> Iterable[str]:
        """Jobs that hold a claim."""
        return self._state.holding

    @property
    def restless(self) -> list[str]:
        """Jobs that the last decision wants looked at again, by name."""
        return sorted(job_id for job_id in self._state.restless if job_id in self._state.holding)

    @property
    def changed(self) -> list[str]:
        """Jobs that hold a claim and have changed since the last decision, by name."""
        return sorted(job_id for job_id in self._state.changed if job_id in self._state.holding)

    @property
    def touched_resources(self) -> Iterable[int]:
        return self._ledger.touched

    @property
    def touched_nodes(self) -> Iterable[int]:
        return self.conditions.touched

    def jobs_on(self, resource: int) -> Iterable[str]:
        return self._ledger.jobs_on[resource]

    def jobs_at(self, node: int) -> Iterable[str]:
        return self._ledger.jobs_at.get(node, ())

    def unread_resources(self, max_age_seconds: float) -> Iterator[int]:
        """Metered resources whose last reading is too old to be believed."""
        ledger = self._ledger
        for heard_at, order in zip(ledger.heard_at, ledger.read_order, strict=True):
            heard = self.at - heard_at <= max_age_seconds
            # Where the site vouches for the rest, only meters that cannot read are too old.
            for resource in [number for number in order if number in ledger.mute] if heard else order:
                read_at = ledger.drawn_at[resource]
                if read_at is None or self.at - read_at <= max_age_seconds:
                    break
                yield resource

    def unread_nodes(self, max_age_seconds: float) -> Iterator[int]:
        """Nodes whose GPUs' last temperature or draw is too old to be believed."""
        conditions, heard_at = self.conditions, self._ledger.heard_at
        vouched = all(self.at - at <= max_age_seconds for at in heard_at)
        in_order = max(heard_at) == -math.inf  # nobody vouches: the first that is fresh ends the search
        for column in (conditions.node_celsius, conditions.node_gpu_watts):
            for node in sorted(conditions.mute & column.keys()) if vouched else column:
                if self.at - self.node_read_at(node, column[node][1]) > max_age_seconds:
                    yield node
                elif in_order:
                    break

    def node_read_at(self, node: int, read_at: float) -> float:
        """When a node's GPUs were last known: read then, or vouched for since."""
        if node in self.conditions.mute:
            return read_at
        number = self.plant.site_numbers[self.plant.spots[node].site.name]
        return max(read_at, self._ledger.heard_at[number])

    def loop_read_at(self, resource: int, read_at: float) -> float:
        """When a loop's coolant was last known: read then, or vouched for since."""
        if resource in self._ledger.mute:
            return read_at
        return max(read_at, self._ledger.heard_at[self.plant.site_number_of_resource[resource]])

    @property
    def heard_at(self) -> list[float]:
        """When each site last vouched for its meters; far in the past where one never did."""
        return self._ledger.heard_at

    @property
    def paused(self) -> Iterable[str]:
        """Paused jobs, the longest first."""
        return sorted(self._state.paused, key=lambda job_id: self._state.jobs[job_id].order)

    def job(self, job_id: str) -> Job:
        self.check()
        return self._jobs.get(job_id) or self.jobs[job_id]

    def queues(self, max_age_seconds: float) -> Iterator[tuple[Stuck | None, Queue]]:
        """Waiting jobs by shape, with what is known to keep the shape from fitting.

        Not known any more where a reading that was too old to be believed has been replaced.
        """
        state = self._state
        believed = state.doubted_seconds <= max_age_seconds
        for shape, queue in state.waiting.items():
            yield state.stuck.get(shape) if believed else None, queue

    @property
    def loosened(self) -> set[int]:
        """Resources with more room than at the last decision."""
        return self._ledger.loosened

    @property
    def relieved(self) -> bool:
        """Whether any of them has it by other means than a job that gave its claim back."""
        return self._ledger.relieved

    @property
    def given_gpus(self) -> list[int]:
        """All GPUs that were ever given back, by pool."""
        return self._ledger.given_gpus

    def cap(self, resource: int) -> int:
        return self._ledger.caps[resource]

    def promised(self, resource: int) -> int:
        """What idle machines draw and what jobs were promised."""
        return self._ledger.promised[resource] + self._claimed.get(resource, 0)

    def used(self, resource: int, max_age_seconds: float) -> float:
        """What is drawn or promised, whichever is more; a reading too old counts as the worst it could be."""
        ledger = self._ledger
        promised = ledger.promised[resource] + self._claimed.get(resource, 0)
        if not ledger.metered[resource]:
            return float(promised)
        read_at = ledger.read_at(resource)
        if read_at is None or self.at - read_at > max_age_seconds:
            return float(max(promised, self.plant.resources[resource].worst))
        return max(float(promised), self._metered_watts(resource))

    def drawn(self, resource: int, max_age_seconds: float) -> float:
        """What is drawn now, for pressure: the meter's word, or the promise where there is no fresh one."""
        read_at = self._ledger.read_at(resource)
        if read_at is None or self.at - read_at > max_age_seconds:
            return float(self.promised(resource))
        return self._metered_watts(resource)

    def gpus_free(self, node: int) -> int:
        if node in self._ledger.down:
            return 0
        return self._ledger.gpus_free[node] + self._gpus.get(node, 0)

    def cpus_free(self, node: int) -> float:
        return (self._ledger.millicpus_free[node] + self._millicpus.get(node, 0)) / 1000

    def nodes_with(self, pool: int, free: int) -> list[int]:
        """Nodes of a pool with so many GPUs free, overlay included."""
        found = self._ledger.nodes_with(pool, free)
        if not self._gpus:
            return found
        spots = self.plant.spots
        laid = [node for node in self._gpus if spots[node].pool == pool and self.gpus_free(node) == free]
        return sorted([*(node for node in found if node not in self._gpus), *laid])

    def free_in(self, pool: int) -> int:
        """All GPUs free in a pool."""
        free = self._ledger.free_in_pool[pool]
        if self._gpus:
            spots = self.plant.spots
            free += sum(more for node, more in self._gpus.items() if spots[node].pool == pool)
        return free

    def free_in_bays(self) -> list[int]:
        """GPUs free in each bay."""
        if not self._gpus:
            return self._ledger.free_in_bay
        free = list(self._ledger.free_in_bay)
        for node, more in self._gpus.items():
            free[self.plant.spots[node].bay] += more
        return free

    def most_free_in(self, pool: int) -> int:
        """GPUs free on the node of a pool that has most of them."""
        counts = range(self.plant.biggest_of_pool[pool], -1, -1)
        return next((free for free in counts if self.nodes_with(pool, free)), 0)

    def flying(self, job_id: str) -> bool:
        """Whether an action for this job has not been answered yet."""
        return job_id in self._state.flying

    def claim(self, job_id: str) -> Claim | None:
        return self._ledger.claims.get(job_id)

    def account(self, project: str) -> Account:
        account = self._state.accounts.get(project, Account()).at_week(week_of(self.at))
        extra = self._promised.get(project)
        return account if extra is None else replace(account, promised=account.promised.plus(extra))

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
        return self._ledger.drawn[resource] + min(0, self._claimed.get(resource, 0))

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
