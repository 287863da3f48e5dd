"""Lined up: who waits or is paused, in which order, and for whom is a place kept?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from wattline.state.action import Reservation
from wattline.state.belief import Belief
from wattline.state.heads import Group, Queue, Shape


class LinedUp(Belief):
    """A state's waiting jobs, seen at a time."""

    __slots__ = ()

    @property
    def paused(self) -> Iterable[str]:
        """Paused jobs, the longest first."""
        return sorted(self._state.paused, key=lambda job_id: self._state.jobs[job_id].order)

    @property
    def queues(self) -> Iterator[tuple[bool, Queue]]:
        """Waiting jobs by shape, with whether the shape is known to have fitted nowhere."""
        stuck = self._state.stuck
        for shape, queue in self._state.waiting.items():
            yield shape in stuck, queue

    @property
    def is_anybody_waiting(self) -> bool:
        return bool(self._state.waiting)

    @property
    def has_newcomers(self) -> bool:
        """Whether somebody has come to wait since the last decision."""
        return self._state.newest_since > self._state.decided_at

    @property
    def newcomers(self) -> Iterable[str]:
        """Jobs that were submitted since the last decision and need not come after another."""
        return self._state.newcomers

    @property
    def newcomer_count(self) -> int:
        return len(self._state.newcomers)

    @property
    def waiting_count(self) -> int:
        return self._state.waiting_count

    @property
    def retrying(self) -> Iterable[str]:
        """Waiting jobs that have run before."""
        return self._state.retrying

    @property
    def stuck(self) -> AbstractSet[Shape]:
        """Shapes that are known to have fitted nowhere."""
        return self._state.stuck

    def groups(self, *, by_project: bool) -> Mapping[tuple[str, str], Group]:
        """Lines of waiting jobs in order, by class and project; by class alone unless `by_project`."""
        return self._state.heads(by_project=by_project).groups

    @property
    def reservations(self) -> Mapping[str, Reservation]:
        """Places that are kept, by the job that waits for them, the first that was made first."""
        return self._state.reservations

    @property
    def decided_at(self) -> float:
        """When the last decision was made."""
        return self._state.decided_at

    def is_stuck(self, job_id: str) -> bool:
        """Whether jobs like this one are remembered not to fit."""
        return self._state.jobs[job_id].remainder.shape in self._state.stuck
