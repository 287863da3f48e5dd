"""Opinion: what would another policy decide about a state that it did not lead to?

The state belongs to the policy that conducts. Another one is asked about it turn by turn, and nothing of what
it answers is done. It has a memory of its own: a shape that fits nowhere under one policy may fit under the
other, a place that one reserves is free for the other, and what one has worked out must neither mislead the
other nor push its notes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wattline.policy import decide
from wattline.spec.policy import Policy
from wattline.state import Decision, JobState, Plant, Reservation, Snapshot, State


class Opinion:
    """One policy's word on somebody else's state."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._plant: Plant | None = None
        self.forget()

    def forget(self) -> None:
        """Begin anew: what was known may not hold where a turn was missed."""
        self._stuck: set[tuple[object, ...]] = set()
        self._restless: dict[str, None] = {}
        self._derived: dict[object, object] = {}
        self._reservations: dict[str, Reservation] | None = None  # None: those that stand, as if it took over

    def ask(self, state: State, at: float) -> Decision:
        """What it would decide now. Ask at every turn: it counts on hearing of all that changed since."""
        if state.plant is not self._plant:
            self.forget()
            self._plant = state.plant
        self._stuck.intersection_update(state.waiting)  # nobody waited: nobody saw whether it fits by now
        standing = state.reservations if self._reservations is None else self._reservations
        self._keep({job_id: one for job_id, one in standing.items() if _is_waiting(state, job_id)})
        with self.remembered(state):
            decision = decide(Snapshot(state, at), self.policy)
        self._remember(state, decision)
        return decision

    def _remember(self, state: State, decision: Decision) -> None:
        """As settling does, of what concerns nobody but the policy itself."""
        jobs = state.jobs
        self._stuck.difference_update([jobs[job_id].remainder.shape for job_id in decision.unsure])
        self._stuck.update([jobs[job_id].remainder.shape for job_id in decision.stuck])
        self._restless = dict.fromkeys(decision.restless)
        given_up = {*decision.given_up, *[action.job for action in decision.actions]}
        standing = self._reservations or {}
        self._keep({job_id: one for job_id, one in standing.items() if job_id not in given_up})
        made = {one.job: one for one in decision.reservations if one.job not in given_up}
        self._reservations = {**(self._reservations or {}), **made}

    def _keep(self, reservations: dict[str, Reservation]) -> None:
        """Keep these and no others; what was kept free is free again, so all may fit that did not."""
        if self._reservations is not None and len(reservations) < len(self._reservations):
            self._stuck.clear()
        self._reservations = reservations

    @contextmanager
    def remembered(self, state: State) -> Iterator[None]:
        """Its own memory in place of the state's, for as long as it takes to answer; all else is read."""
        own = state.stuck, state.restless, state.derived, state.reservations
        state.stuck, state.derived = self._stuck, self._derived
        state.restless = {**state.restless, **self._restless}
        state.reservations = state.reservations if self._reservations is None else self._reservations
        try:
            yield
        finally:
            state.stuck, state.restless, state.derived, state.reservations = own


def _is_waiting(state: State, job_id: str) -> bool:
    job = state.jobs.get(job_id)
    return job is not None and job.state is JobState.WAITING
