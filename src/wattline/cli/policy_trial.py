"""A policy on trial: what would it have done to recorded jobs, and what does it do when things break?

Recorded decisions are asked for again, each about the state as it was then: what the policy would have
changed is not carried on. Scenarios are played through by it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from wattline.cli.twin_progress import TwinProgress
from wattline.control import Opinion, RuleTrial, Trial
from wattline.plane.past import turns_since
from wattline.plane.session import Session
from wattline.policy import decide
from wattline.spec import Policy
from wattline.state import Decision, RunSubmitted, Snapshot
from wattline.twin.replaying import Rules
from wattline.twin.report import Report
from wattline.twin.run import run
from wattline.twin.scenario import read_stage, setting_of
from wattline.twin.wording import say_count

REFUSES, STARTS_NOTHING = "REFUSE EVERYTHING", "START NOTHING"  # so that nobody overlooks it


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What was recorded, beside what would have been decided."""

    recorded: Trial
    would: Trial
    since: float
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A scenario under the policy."""

    scenario: str
    trial: Trial
    report: Report

    @property
    def starts_nothing(self) -> bool:
        return self.report.jobs.submitted > 0 and not self.trial.counts["started"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """All that a policy was tried on."""

    policy: Policy
    history: History | None
    played: Sequence[Played]
    warnings: Sequence[str] = ()  # what it says of another facility than the one here

    @property
    def rules(self) -> list[RuleTrial]:
        """Each rule over all that it was tried on."""
        trials = [*([self.history.would] if self.history else []), *(each.trial for each in self.played)]
        found: dict[str, RuleTrial] = {}
        for rule in (rule for trial in trials for rule in trial.rules.values()):
            known = found.setdefault(rule.rule, RuleTrial(rule=rule.rule, mode=rule.mode))
            if rule.failed and not known.failed:
                known.failure, known.failed_for = rule.failure, rule.failed_for
            known.holds += rule.holds
            known.failed += rule.failed
        return list(found.values())

    @property
    def complaints(self) -> list[str]:
        """What nobody should put in force without knowing."""
        found = []
        would = self.history.would if self.history is not None else None
        if would is not None and would.starts_nothing:
            word = REFUSES if would.refuses_everything else STARTS_NOTHING
            jobs = say_jobs(len(would.jobs))
            found.append(f"it would {word}: not one of {jobs} that were recorded would have started")
        for each in self.played:
            if each.starts_nothing:
                counts = each.report.jobs
                word = REFUSES if counts.refused == counts.submitted else STARTS_NOTHING
                found.append(f"it would {word} in {each.scenario}, of {say_jobs(counts.submitted)}")
        found += [
            f"rule {rule.rule} cannot be evaluated for {say_jobs(rule.failed)}, first {rule.failed_for}: "
            f"{rule.failure}"
            for rule in self.rules
            if rule.failed
        ]
        return found


def try_on_history(
    session: Session, policy: Policy, since: float | None, progress: TwinProgress
) -> History | None:
    """None where nothing was decided since."""
    opinion, would, recorded = Opinion(policy), Trial(policy), Trial(Policy())
    first = last = None
    for turn in turns_since(session, since, progress.say):
        first, last = first or turn, turn
        decided = turn.record.decision
        snapshot = Snapshot(turn.state, decided.at)
        recorded.see(snapshot, decided)
        would.see(snapshot, opinion.ask(turn.state, decided.at))
        for event in turn.record.events:
            if isinstance(event, RunSubmitted):
                would.rule_on(snapshot, event.jobs)
    if first is None or last is None:
        return None
    for trial in (recorded, would):
        trial.close(Snapshot(last.state, last.state.at))
    # Both were shown the same jobs; one may let a job wait without a word that the other speaks of.
    recorded.jobs = would.jobs = recorded.jobs | would.jobs
    return History(
        recorded=recorded, would=would, since=first.record.decision.at, until=last.record.decision.at
    )


def try_in_scenario(policy: Policy, name: str, progress: TwinProgress) -> Played:
    trial = Trial(policy)

    def decide_and_count(snapshot: Snapshot, by: Policy) -> Decision:
        decision = decide(snapshot, by)
        trial.see(snapshot, decision)
        return decision

    stage = read_stage(name)
    setting = setting_of(stage, Rules(name=policy.policy, policy=policy, decide=decide_and_count))
    jobs = max(1, sum(1 for _ in setting.arrivals()))
    outcome = run(setting, tell=lambda glimpse: progress.tell(name, glimpse, jobs, setting.until_seconds))
    progress.end(name)
    return Played(scenario=stage.scenario.scenario, trial=trial, report=outcome.report)


def describe_rule(rule: RuleTrial) -> dict[str, object]:
    """A rule as programs read it."""
    unknown = {"failure": rule.failure or None, "failed_for": rule.failed_for or None}
    return {**msgspec.structs.asdict(rule), **unknown}


def say_jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{say_count(count)} jobs"
