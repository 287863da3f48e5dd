"""A turn: who is next in line, and what comes of it?"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import msgspec

from wattline.policy.asked import ask_again
from wattline.policy.naming import next_action
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Decision, Job, JobState, Place, Queue, Snapshot, Verdict
from wattline.state.request import PRIORITY_RANK
from wattline.twin.baselines.packing import judge_size

_MOST_DOUBLINGS = 6


class Turn:
    """One decision in the making. What nobody answered is asked again first."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        snapshot.check()
        self.draft = snapshot.copy()
        self.begun: list[str] = []  # jobs that this turn began
        self._policy = policy
        self._actions, self.looks = ask_again(self.draft, policy)
        self._verdicts: list[Verdict] = []
        self._passed_over = False
        self._queues = [queue for _, queue in self.draft.queues if not self._refuse_if_too_big(queue)]

    @property
    def anyone_waits(self) -> bool:
        return bool(self._queues)

    def line(self) -> Iterator[Job]:
        """Waiting jobs, the more urgent first, then in order of arrival."""
        heads = [(order(self.draft.job(queue[0][-1])), 0, queue) for queue in self._queues]
        heapq.heapify(heads)
        while heads:
            (*_, job_id), position, queue = heapq.heappop(heads)
            job = self.draft.job(job_id)
            ready_at = self._ready_at(job)
            self._passed_over = False
            if ready_at > self.draft.at:
                self.looks.append(ready_at)
            else:
                yield job
            position += 1
            if not self._passed_over and position < len(queue):
                heapq.heappush(heads, (order(self.draft.job(queue[position][-1])), position, queue))

    def pass_over_alike(self) -> None:
        """Try nobody else of the shape that was last in line: those fail as it did."""
        self._passed_over = True

    def begin(self, job: Job, place: Place) -> None:
        kind = ActionKind.RESUME if job.state is JobState.PAUSED else ActionKind.START
        self._issue(next_action(job, kind, place=place, rung=-1))
        self.begun.append(job.id)

    def pause(self, job: Job, because: str) -> None:
        self._issue(next_action(job, ActionKind.PAUSE, because=because))

    def decision(self) -> Decision:
        if any(action.kind is not ActionKind.REFUSE for action in self._actions):
            self.looks.append(self.draft.at + self._policy.thresholds.acknowledge_within)
        return Decision(
            at=self.draft.at,
            actions=tuple(self._actions),
            verdicts=tuple(self._verdicts),
            revisit_at=min(self.looks, default=None),
        )

    def _issue(self, action: Action) -> None:
        self.draft.issue(action)
        self._actions.append(action)

    def _refuse_if_too_big(self, queue: Queue) -> bool:
        """Refuse a whole queue at once: jobs of one shape are all as big."""
        verdict = judge_size(self.draft.plant, self.draft.job(queue[0][-1]).request)
        if verdict is None:
            return False
        for *_, job_id in queue:
            action = next_action(self.draft.job(job_id), ActionKind.REFUSE, because=verdict.sentence())
            self._actions.append(action)
            self._verdicts.append(msgspec.structs.replace(verdict, job=job_id))
        return True

    def _ready_at(self, job: Job) -> float:
        """A job that was lost waits longer each time, or one dark node would start it without end."""
        if not job.past:
            return 0.0
        doublings = min(len(job.past) - 1, _MOST_DOUBLINGS)
        return job.since + self._policy.thresholds.restart_backoff * 2.0**doublings


def order(job: Job) -> tuple[float, float, str]:
    return (-PRIORITY_RANK[job.request.priority], job.submitted_at, job.id)
