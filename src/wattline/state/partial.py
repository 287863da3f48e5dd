"""A part of a snapshot: some nodes and some jobs, as if there were no others to decide about.

What is shared stays shared: supplies, loops, links, accounts and meters are those of the whole, with all that
the others claim. Nodes of others have nothing free. Nothing that was remembered of the whole counts here, and
nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from wattline.state.action import Reservation
from wattline.state.claim import Claim
from wattline.state.heads import Group, Heads, Queue, Shape
from wattline.state.job import Flight, Job
from wattline.state.snapshot import Snapshot
from wattline.state.state import State


class PartialSnapshot(Snapshot):
    """What one of several may decide about."""

    __slots__ = ("_is_own", "_lasting")

    def __init__(
        self, state: State, at: float, is_own: Callable[[Job], bool], nodes_of_others: Iterable[int]
    ) -> None:
        super().__init__(state, at)
        self._is_own = is_own
        self._lasting: dict[object, object] = {}
        ledger = state.ledger
        for node in nodes_of_others:
            free, millicpus = self.gpus_free(node), ledger.millicpus_free[node]
            if free or millicpus:
                self.keep(Claim(nodes=((node, free),), millicpus=millicpus, amounts=(), gpu_watts=0.0))

    def copy(self) -> PartialSnapshot:
        other = PartialSnapshot(self._state, self.at, self._is_own, ())
        other.exceptions, other._lasting = self.exceptions, self._lasting
        other._claimed, other._gpus = dict(self._claimed), dict(self._gpus)
        other._free_in, other._bays = dict(self._free_in), set(self._bays)
        other._roused = set(self._roused)
        other._millicpus, other._jobs = dict(self._millicpus), dict(self._jobs)
        other._laid, other._zones = dict(self._laid), set(self._zones)
        other._promised = dict(self._promised)
        return other

    def _own(self, jobs: Iterable[str]) -> list[str]:
        known, is_own = self.jobs, self._is_own
        return [job_id for job_id in jobs if is_own(known[job_id])]

    @property
    def flights(self) -> Mapping[str, Flight]:
        of_jobs = {name: flight for name, flight in super().flights.items() if flight.action.job}
        jobs, is_own = self.jobs, self._is_own
        return {name: flight for name, flight in of_jobs.items() if is_own(jobs[flight.action.job])}

    @property
    def holding(self) -> dict[str, None]:
        return dict.fromkeys(self._own(super().holding))

    @property
    def elastic(self) -> dict[str, None]:
        return dict.fromkeys(self._own(super().elastic))

    @property
    def restless(self) -> list[str]:
        return self._own(super().restless)

    @property
    def changed(self) -> list[str]:
        return self._own(super().changed)

    def jobs_on(self, resource: int) -> Iterable[str]:
        return self._own(super().jobs_on(resource))

    def jobs_at(self, node: int) -> Iterable[str]:
        return self._own(super().jobs_at(node))

    @property
    def paused(self) -> Iterable[str]:
        return self._own(super().paused)

    @property
    def newcomers(self) -> Iterable[str]:
        return self._own(job_id for job_id in super().newcomers if job_id in self.jobs)

    @property
    def retrying(self) -> Iterable[str]:
        return self._own(super().retrying)

    @property
    def queues(self) -> Iterator[tuple[bool, Queue]]:
        """None is known not to fit: what was found of the whole says nothing of a part."""
        for _, queue in self._own_queues():
            yield False, queue

    def _own_queues(self) -> Iterator[tuple[Shape, Queue]]:
        known, is_own = self.jobs, self._is_own
        for shape, queue in self._state.waiting.items():
            own = [key for key in queue if is_own(known[key[2]])]
            if own:
                yield shape, Queue(own)

    def groups(self, *, by_project: bool) -> Mapping[tuple[str, str], Group]:
        heads = Heads(by_project=by_project)
        for shape, queue in self._own_queues():
            for key in queue:
                heads.enter(self.jobs[key[2]], key, shape, queue, self.jobs)
        return heads.groups

    @property
    def is_anybody_waiting(self) -> bool:
        return next(self._own_queues(), None) is not None

    @property
    def waiting_count(self) -> int:
        return sum([len(queue) for _, queue in self._own_queues()])

    @property
    def newcomer_count(self) -> int:
        return len(list(self.newcomers))

    @property
    def stuck(self) -> AbstractSet[Shape]:
        return frozenset()

    def is_stuck(self, job_id: str) -> bool:  # noqa: ARG002 - the whole's word counts for nothing here
        return False

    @property
    def reservations(self) -> Mapping[str, Reservation]:
        reservations = super().reservations
        return {job_id: one for job_id, one in reservations.items() if self._is_own(self.jobs[job_id])}

    @property
    def lasting(self) -> dict[object, object]:
        return self._lasting
