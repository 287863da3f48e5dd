"""Trial: what would a policy do to the jobs that it is shown, and do its rules hold water?

Each job counts once for each thing that would be done to it. Rules are evaluated for every job, also where
they would only warn, so that one which cannot be evaluated is found before it is in force.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from wattline.policy import dominant
from wattline.policy.permitting.rules import rule_values
from wattline.spec import RULE_STRUCTS, ExpressionError, compile_expression
from wattline.spec.policy import Mode, Policy
from wattline.state import ActionKind, Decision, JobRequest, JobState, Snapshot, Verdict

STARTED, REFUSED = "started", "refused"
_DONE: dict[ActionKind, str] = {
    ActionKind.START: STARTED,
    ActionKind.REFUSE: REFUSED,
    ActionKind.CAP_POWER: "capped",
    ActionKind.SHRINK_BATCH: "shrunk",
    ActionKind.PAUSE: "paused",
    ActionKind.RESUME: "resumed",
    ActionKind.MIGRATE: "moved",
    ActionKind.STOP: "stopped",
}


class RuleTrial(msgspec.Struct, kw_only=True):
    """How one rule fared."""

    rule: str
    mode: Mode
    holds: int = 0  # for so many jobs
    failed: int = 0  # … and for so many it could not be evaluated
    failure: str = ""  # the first
    failed_for: str = ""  # … of this job


class Trial:
    """What was decided about some jobs, by one policy."""

    def __init__(self, policy: Policy, most_ruled_at_once: int | None = None) -> None:
        """Of more jobs than that in one decision, some are not tried on rules: a shadow must be quick."""
        self.policy = policy
        self._most_ruled = most_ruled_at_once
        self.jobs: set[str] = set()  # that waited
        self.decisions = 0
        self.refused_by: Counter[str] = Counter()
        self.rules = {rule.name: RuleTrial(rule=rule.name, mode=rule.mode) for rule in policy.rules}
        self._done: dict[str, set[str]] = {deed: set() for deed in _DONE.values()}
        self._ruled: set[str] = set()
        self._refused: set[str] = set()  # those that were counted by rule

    @property
    def counts(self) -> dict[str, int]:
        """How many jobs each thing would be done to; waiting: those that neither start nor are refused."""
        counts = {deed: len(jobs) for deed, jobs in self._done.items()}
        waiting = self.jobs - self._done[STARTED] - self._done[REFUSED]
        return {**counts, "waiting": len(waiting)}

    @property
    def refuses_everything(self) -> bool:
        """Whether jobs waited, and every one of them was refused."""
        return bool(self.jobs) and self.jobs <= self._done[REFUSED] - self._done[STARTED]

    @property
    def starts_nothing(self) -> bool:
        """Whether jobs waited, and not one was started: all are refused, or wait without end."""
        return bool(self.jobs) and not self._done[STARTED]

    @property
    def failed_rules(self) -> list[RuleTrial]:
        return [rule for rule in self.rules.values() if rule.failed]

    def see(self, snapshot: Snapshot, decision: Decision) -> None:
        """Count one decision; the snapshot is of the state that it was made about."""
        self.decisions += 1
        for action in decision.actions:
            lifted = action.kind in (ActionKind.CAP_POWER, ActionKind.SHRINK_BATCH) and action.fraction >= 1.0
            if action.job and action.id not in snapshot.flights and not lifted:
                self._done[_DONE[action.kind]].add(action.job)
        self._count_refusals(decision)
        spoken_of = {action.job for action in decision.actions if action.job}
        spoken_of.update([verdict.job for verdict in decision.verdicts if verdict.job])
        jobs = [snapshot.jobs[job_id] for job_id in sorted(spoken_of)]
        self.jobs.update([job.id for job in jobs if job.state is JobState.WAITING])
        new = [job.request for job in jobs if job.id not in self._ruled]
        self.rule_on(snapshot, new[: self._most_ruled])

    def _count_refusals(self, decision: Decision) -> None:
        refused = [action for action in decision.actions if action.kind is ActionKind.REFUSE]
        if not refused:
            return
        said: dict[str, list[Verdict]] = {}
        for verdict in decision.verdicts:
            said.setdefault(verdict.job, []).append(verdict)
        for action in refused:
            if action.job not in self._refused:
                self._refused.add(action.job)
                reason = dominant(tuple(said.get(action.job, ())))
                self.refused_by[reason.rule if reason is not None else action.because] += 1

    def close(self, snapshot: Snapshot) -> None:
        """Count who still waits: behind others of its shape, nobody may ever have spoken of it."""
        self.jobs.update([job_id for _, queue in snapshot.queues for _, _, job_id in queue])

    def rule_on(self, snapshot: Snapshot, requests: Iterable[JobRequest]) -> None:
        """Evaluate every rule for jobs that were not seen yet."""
        for request in requests:
            if request.job in self._ruled:
                continue
            self._ruled.add(request.job)
            values = rule_values(snapshot, request, self.policy) if self.policy.rules else {}
            for rule in self.policy.rules:
                trial = self.rules[rule.name]
                try:
                    trial.holds += compile_expression(rule.when, (), RULE_STRUCTS).holds(values)
                except ExpressionError as error:
                    trial.failed += 1
                    if trial.failed == 1:
                        trial.failure, trial.failed_for = error.message, request.job
