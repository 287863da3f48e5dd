"""A policy is tried on decisions: who would start, who is refused by what, which rule cannot be asked."""

from __future__ import annotations

import pytest

from building import MONDAY, a_facility, a_job, a_policy, a_site, adopted
from wattline.control import Trial
from wattline.policy import decide
from wattline.spec import Policy
from wattline.state import Outcome, RunSubmitted, Snapshot, State


def standing(*gpus: int) -> Snapshot:
    state = State(a_facility(a_site(nodes=1)))
    jobs = [a_job(f"r{number}/train", gpus=each) for number, each in enumerate(gpus, 1)]
    submitted = [RunSubmitted(at=MONDAY, run=job.run, pipeline="p", jobs=(job,)) for job in jobs]
    state.fold([adopted(MONDAY), *submitted])
    return Snapshot(state, MONDAY)


def a_rule(mode: str, when: str = "job.gpus > 4") -> Policy:
    return a_policy(rules=[{"name": "small", "when": when, "say": "at most four GPUs", "mode": mode}])


def tried(snapshot: Snapshot, policy: Policy) -> Trial:
    trial = Trial(policy)
    trial.see(snapshot, decide(snapshot, policy))
    trial.close(snapshot)
    return trial


@pytest.mark.parametrize(
    ("mode", "started", "outcome"),
    [
        ("report", 1, Outcome.WARN),
        ("warn", 1, Outcome.WARN),
        ("block", 0, Outcome.REFUSE),
        ("enforce", 0, Outcome.REFUSE),
    ],
)
def test_a_rule_does_to_who_asks_what_its_mode_says(mode: str, started: int, outcome: Outcome) -> None:
    snapshot, policy = standing(8), a_rule(mode)
    (verdict,) = [one for one in decide(snapshot, policy).verdicts if one.rule == "rule.small"]
    assert (verdict.outcome, verdict.say) == (outcome, "at most four GPUs")
    trial = tried(snapshot, policy)
    assert (trial.counts["started"], trial.counts["refused"]) == (started, 1 - started)
    assert trial.rules["small"].holds == 1
    assert trial.refuses_everything is (started == 0)


@pytest.mark.parametrize(("mode", "started"), [("report", 1), ("warn", 1), ("block", 0), ("enforce", 0)])
def test_a_rule_that_cannot_be_evaluated_is_found_whatever_its_mode(mode: str, started: int) -> None:
    trial = tried(standing(8), a_rule(mode, "job.gpu[0] == 'A100'"))
    (rule,) = trial.failed_rules
    assert (rule.failed, rule.holds, rule.failed_for) == (1, 0, "r1/train")
    assert rule.failure
    assert trial.counts == {**dict.fromkeys(trial.counts, 0), "started": started, "waiting": 1 - started}
    assert trial.starts_nothing is (started == 0)
    assert not trial.refuses_everything, "it waits"


def test_who_waits_behind_others_counts_too() -> None:
    trial = tried(standing(8, 8, 8), a_policy())
    assert len(trial.jobs) == 3
    assert (trial.counts["started"], trial.counts["waiting"]) == (1, 2)
    assert not trial.starts_nothing


def test_where_nobody_asked_nothing_is_refused() -> None:
    trial = tried(standing(), a_policy())
    assert not trial.starts_nothing
    assert not trial.refuses_everything
    assert trial.decisions == 1


def test_what_was_refused_is_counted_by_rule_and_once_for_each_job() -> None:
    snapshot, policy = standing(8, 6, 2), a_rule("block")
    trial = Trial(policy)
    for _ in range(3):
        trial.see(snapshot, decide(snapshot, policy))
    assert trial.refused_by == {"rule.small": 2}
    assert trial.counts["refused"] == 2
