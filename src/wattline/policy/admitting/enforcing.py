"""Enforcing: which running jobs does a rule in mode `enforce` take off, now that it holds for them?

A rule may come to hold while a job runs: another policy is in force, a quota runs out, an exception ended.
Who saves checkpoints is paused and comes back once the rule no longer holds; who does not is stopped.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wattline.policy.admitting.securing import next_securing
from wattline.policy.giving_way.worth import Worth
from wattline.policy.naming import next_action
from wattline.policy.permitting.permission import judge_permission
from wattline.spec.policy import Mode, Policy
from wattline.state import Action, ActionKind, JobState, Outcome, Snapshot, Verdict


class Enforced(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)


def enforce(draft: Snapshot, policy: Policy) -> Enforced:
    """Once in a while: rules speak of quotas, and those wear away slowly."""
    enforced = Enforced()
    if not draft.holding:
        return enforced
    enforced.looks.append(next_securing(draft.at, policy))
    if draft.at < next_securing(draft.decided_at, policy):
        return enforced
    names = {f"rule.{rule.name}" for rule in policy.rules if rule.mode is Mode.ENFORCE}
    for job_id in _in_order(draft, policy):
        if policy.throttling.is_on and len(enforced.actions) >= policy.thresholds.jobs_per_response:
            break  # what they leave may do for the rest
        job = draft.job(job_id)
        if job.state is not JobState.RUNNING or job.asked or draft.flying(job_id):
            continue
        against = [
            verdict
            for verdict in judge_permission(draft, job.remainder, policy)
            if verdict.outcome is Outcome.REFUSE and verdict.rule in names
        ]
        if not against:
            continue
        kind = ActionKind.PAUSE if job.request.checkpoints else ActionKind.STOP
        action = next_action(job, kind, because=against[0].sentence())
        draft.issue(action)
        enforced.actions.append(action)
        enforced.verdicts += [msgspec.structs.replace(verdict, job=job_id) for verdict in against]
    return enforced


def _in_order(draft: Snapshot, policy: Policy) -> Iterable[str]:
    """Those who hold something, by what their work is worth where the policy weighs it."""
    if not policy.throttling.is_on:
        return draft.holding
    worth = Worth(draft, policy)
    return sorted(draft.holding, key=lambda job_id: (worth.weigh(draft.job(job_id)), job_id))
