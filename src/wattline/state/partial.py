"""A part of a snapshot: some nodes and some jobs, as if there were no others to decide about.

What is shared stays shared: supplies, loops, links, accounts and meters are those of the whole, with all that
the others claim. Nodes of others have nothing free. Nothing that was remembered of the whole counts here, and
nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from wattline.state.action import Reservation
from wattline.state.claim import Claim
from wattline.state.job import Flight, Job
from wattline.state.snapshot import Snapshot
from wattline.state.state import State
from wattline.state.tables import Queue


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
        other._millicpus, other._jobs = dict(self._millicpus), dict(self._jobs)
        other._laid, other._zones = dict(self._laid), set(self._zones)
        other._promised = dict(self._promised)
        return other

    def _own(self, jobs: Iterable[str]) -> list[str]:
        known, is_own = self.jobs, self._is_own
        return [job_id for job_id in jobs if is_own(known[job_id])]

    @property
    def flights(self) -> Mapping[str, Flight]:
        flights = super().flights
        return {
            name: flight for name, flight in flights.items() if self._is_own(self.jobs[flight.action.job])
        }

    @property
    def holding(self) -> Iterable[str]:
        return self._own(super().holding)

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
    def queues(self) -> Iterator[tuple[bool, Queue]]:
        yield from self._own_queues(queue for _, queue in super().queues)

    @property
    def lines(self) -> Iterator[tuple[bool, Queue]]:
        yield from self._own_queues(queue for _, queue in super().lines)

    def _own_queues(self, queues: Iterable[Queue]) -> Iterator[tuple[bool, Queue]]:
        """None is known not to fit: what was found of the whole says nothing of a part."""
        known, is_own = self.jobs, self._is_own
        for queue in queues:
            own = [key for key in queue if is_own(known[key[2]])]
            if own:
                yield False, own

    @property
    def is_anybody_waiting(self) -> bool:
        return next(self.queues, None) is not None

    def is_stuck(self, job_id: str) -> bool:  # noqa: ARG002 - the whole's word counts for nothing here
        return False

    @property
    def reservations(self) -> Mapping[str, Reservation]:
        reservations = super().reservations
        return {job_id: one for job_id, one in reservations.items() if self._is_own(self.jobs[job_id])}

    @property
    def lasting(self) -> dict[object, object]:
        return self._lasting
