"""Reclaiming: a machine is taken back; who saves and leaves in time, and who is lost with it?

Whoever saves checkpoints leaves at once: the notice is short, and what is done after the save is lost in any
case. Whoever does not works on until the end: it may be done before, and begins anew by its restart rule.
"""

from __future__ import annotations

import msgspec

from wattline.policy.naming import next_action
from wattline.policy.placing.price import leaving_gpu_seconds
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Job, JobState, Outcome, Snapshot, Verdict

_ON_ITS_WAY = frozenset({JobState.STARTING, JobState.RUNNING, JobState.PAUSING})


class Left(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)


def leave_reclaimed(draft: Snapshot, policy: Policy) -> Left:
    """Pause who can save, and stop who is still there when the machine is gone; both wait in line again."""
    left = Left()
    for name, reclaim in sorted(draft.reclaims.items(), key=lambda one: one[0]):
        node = draft.plant.node_number.get(name)
        if reclaim.leaves_at is None or node is None:
            continue
        for job_id in sorted(draft.jobs_at(node)):
            job = draft.job(job_id)
            if job.state not in _ON_ITS_WAY:
                continue
            seconds = reclaim.leaves_at - draft.at
            if seconds <= 0.0:
                because = f"{name} was taken back"
                _act(draft, left, next_action(job, ActionKind.STOP, because=because, lost=True))
                continue
            left.looks.append(reclaim.leaves_at)
            if job.state is not JobState.RUNNING or not job.request.checkpoints or job.asked:
                continue
            # A running job has been so since it started, or since it could not be made to leave.
            again_at = job.since + policy.thresholds.settle
            if job.since != job.started_at and draft.at < again_at:
                left.looks.append(again_at)
                continue
            verdict = _press(job, name, seconds)
            _act(
                draft,
                left,
                next_action(
                    job,
                    ActionKind.PAUSE,
                    because=verdict.sentence(),
                    lost_gpu_seconds=leaving_gpu_seconds(job),
                    yields=True,
                ),
            )
            left.verdicts.append(verdict)
    return left


def _act(draft: Snapshot, left: Left, action: Action) -> None:
    draft.issue(action)
    left.actions.append(action)


def _press(job: Job, node: str, seconds: float) -> Verdict:
    return Verdict(
        rule="cloud.reclaim",
        subject=node,
        outcome=Outcome.PRESS,
        job=job.id,
        numbers={"notice_seconds": seconds},
        say="it is taken back; the job saves and waits for another place",
    )
