"""Preemption: who makes way for a job that is entitled to run now, so that the least work is lost?

Two may ask: a class that the policy lets preempt, of classes below its own; and a team that would still hold
less than another, for its weight, after both have changed places. Only who saves checkpoints is asked, and
nobody before it has run for its least time. Who makes way waits in line again, and goes on from its
checkpoint.
"""

from __future__ import annotations

from wattline.policy.giving_way.worth import Worth
from wattline.policy.naming import next_action
from wattline.policy.placing.price import leaving_gpu_seconds, save_seconds
from wattline.policy.turns.fairness import Fairness
from wattline.policy.turns.reserving import find_opening, may_run
from wattline.spec.policy import Policy, SchedulingClass
from wattline.state import Action, ActionKind, Job, JobState, Reservation, Snapshot

_UNKNOWN = SchedulingClass()


class Ways:
    """Who might make way at this time, looked at once for all who ask."""

    def __init__(self, draft: Snapshot, policy: Policy, fairness: Fairness) -> None:
        self._draft, self._policy, self._fairness = draft, policy, fairness
        self._able: list[Job] | None = None

    def make_way(self, job: Job, near: str | None) -> tuple[Reservation, list[Action]] | None:
        """Whom to pause for a job, and the place that is then kept for it; None where nobody may be asked."""
        draft, fairness = self._draft, self._fairness
        leavers = self._may_be_asked(job)
        if not leavers or not may_run(draft, self._policy, job):
            return None
        opening = find_opening(draft, self._policy, job, leavers, near)
        if opening is None:
            return None
        actions = []
        for one in opening.leavers:
            if one.state is not JobState.RUNNING:
                continue  # it is leaving already
            action = next_action(
                one,
                ActionKind.PAUSE,
                lost_gpu_seconds=leaving_gpu_seconds(one),
                because=f"makes way for {job.id}",
                yields=True,
            )
            draft.issue(action)
            actions.append(action)
            fairness.take(one.request.project, -one.request.gpus)
        reservation = Reservation(
            job=job.id,
            place=opening.place,
            made_at=draft.at,
            starts_at=draft.at + max((save_seconds(one) for one in opening.leavers), default=0.0),
            because=f"{len(opening.leavers)} jobs make way",
        )
        return reservation, actions

    def _may_be_asked(self, job: Job) -> list[Job]:
        """Those who lose least first."""
        policy, fairness = self._policy, self._fairness
        mine = _class_of(job, policy)
        by_share = policy.sharing.preempt
        if not (mine.preempts or by_share):
            return []
        if self._able is None:
            self._able = self._look()
        standing = fairness.standing(job.request.project, job.request.gpus)
        found = []
        for known in self._able:
            one = self._draft.job(known.id)
            if one.state is JobState.PAUSING:
                found.append(one)  # on its way out: what it leaves may do for this one too
                continue
            below = mine.preempts and _class_of(one, policy).priority < mine.priority
            if below or (by_share and fairness.standing(one.request.project, -one.request.gpus) >= standing):
                found.append(one)
        # Only those who leave anyway are no reason to reservation anything: what they leave is taken in turn.
        return found if any(one.state is JobState.RUNNING for one in found) else []

    def _look(self) -> list[Job]:
        draft, policy = self._draft, self._policy
        latest = draft.at - policy.sharing.least_runtime
        able = []
        for job_id in draft.holding:
            one = draft.job(job_id)
            if one.state is JobState.PAUSING and one.yields:
                able.append(one)
            elif one.state is JobState.RUNNING and one.request.checkpoints and one.request.gpus:
                may_leave = _class_of(one, policy).gives_way and not one.asked and not draft.flying(job_id)
                if may_leave and _running_since(one) <= latest:
                    able.append(one)
        worth = Worth(draft, policy) if policy.throttling.is_on else None

        def loses(one: Job) -> float:
            lost = leaving_gpu_seconds(one) / one.request.gpus
            return lost if worth is None else lost * worth.weigh(one)

        able.sort(key=lambda one: (loses(one), -_running_since(one), one.id))
        return able


def _class_of(job: Job, policy: Policy) -> SchedulingClass:
    return policy.classes.get(job.request.scheduling_class, _UNKNOWN)


def _running_since(job: Job) -> float:
    return job.since if job.started_at is None else job.started_at
