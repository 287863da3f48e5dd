from __future__ import annotations

import pytest

from building import MONDAY, Hall, a_job, a_policy, a_world, kinds
from wattline.policy import explain
from wattline.policy.permitting.exceptions import judge_answer, limit_of
from wattline.spec import Policy
from wattline.state import ExceptionAnswered, ExceptionAsked, JobState, Outcome, Verdict

HOUR = 3600.0
TEAMS = {"nlp": {"quota": {"gpu_hours": 4}}}
RULE = {"name": "small", "when": "job.gpus > 1", "say": "one GPU each", "mode": "block"}


def grant(
    hall: Hall,
    rule: str = "quota.gpu_hours",
    amount: float = 4.0,
    *,
    project: str = "nlp",
    until: float = MONDAY + 24 * HOUR,
) -> None:
    number = len(hall.state.exceptions) + 1
    hall.fold(
        ExceptionAsked(
            at=hall.at,
            actor="ada",
            project=project,
            key=f"k{number}",
            rule=rule,
            amount=amount,
            until=until,
            because="a deadline",
        ),
        ExceptionAnswered(at=hall.at, actor="grace", exception=f"ex-{number}", approved=True),
    )


def verdict_on(hall: Hall, job: str, rule: str) -> Verdict:
    return next(verdict for verdict in hall.job(job).verdicts if verdict.rule == rule)


@pytest.mark.parametrize(("gpus", "state"), [(8, JobState.STARTING), (9, JobState.REFUSED)])
def test_an_amount_comes_on_top_of_the_quota_and_no_more(gpus: int, state: JobState) -> None:
    hall = a_world(policy=a_policy(teams=TEAMS))
    grant(hall, amount=4.0)
    hall.submit(a_job(gpus=gpus, max_duration_seconds=HOUR))
    hall.decide()
    assert hall.job().state is state


def test_who_waits_for_a_quota_starts_when_more_is_approved() -> None:
    hall = a_world(policy=a_policy(teams=TEAMS))
    hall.run(a_job("r1/train", gpus=4, max_duration_seconds=HOUR))
    hall.submit(a_job("r2/train", gpus=2, max_duration_seconds=HOUR))
    hall.decide()
    assert hall.job("r2/train").state is JobState.WAITING
    grant(hall, amount=1.0)
    assert kinds(hall.decide()) == []
    grant(hall, amount=1.0)
    assert kinds(hall.decide()) == [("start", "r2/train")], "two amounts add up"
    said = verdict_on(hall, "r2/train", "quota.gpu_hours")
    assert said.outcome is Outcome.WARN
    assert said.say.startswith("allowed by exception ex-1 of grace until 1970-01-06 00:00 UTC: a deadline; ")
    assert "ex-2" in said.say


def test_a_job_that_needs_no_exception_is_not_told_of_one() -> None:
    hall = a_world(policy=a_policy(teams=TEAMS))
    grant(hall)
    hall.run(a_job(gpus=4, max_duration_seconds=HOUR))
    said = verdict_on(hall, "r1/train", "quota.gpu_hours")
    assert (said.outcome, said.say) == (Outcome.ALLOW, "")
    assert said.numbers["limit_gpu_hours"] == 8.0


@pytest.mark.parametrize(
    ("rule", "amount", "project", "until"),
    [
        ("quota.gpu_hours", 4.0, "nlp", MONDAY + 1),
        ("quota.gpu_hours", 4.0, "vision", MONDAY + 24 * HOUR),
        ("budget.usd", 4.0, "nlp", MONDAY + 24 * HOUR),
    ],
    ids=["ended", "of another project", "of another quota"],
)
def test_only_what_was_approved_is_allowed(rule: str, amount: float, project: str, until: float) -> None:
    hall = a_world(policy=a_policy(teams=TEAMS))
    grant(hall, rule, amount, project=project, until=until)
    hall.wait(2)
    hall.submit(a_job(gpus=8, max_duration_seconds=HOUR))
    hall.decide()
    assert hall.job().state is JobState.REFUSED


def test_one_that_has_ended_is_not_remembered_as_fitting() -> None:
    """What would never fit is remembered by shape: with the exception gone, the answer is another."""
    hall = a_world(policy=a_policy(teams=TEAMS))
    grant(hall, until=MONDAY + HOUR)
    hall.run(a_job("r1/train", gpus=8, max_duration_seconds=HOUR))
    hall.ended("r1/train")
    hall.wait(2 * HOUR)
    hall.submit(a_job("r2/train", gpus=8, max_duration_seconds=HOUR))
    hall.decide()
    assert hall.job("r2/train").state is JobState.REFUSED


@pytest.mark.parametrize(("rule", "expected"), [("small", "start"), ("other", "refuse")])
def test_a_rule_does_not_hold_for_a_project_with_an_exception(rule: str, expected: str) -> None:
    hall = a_world(policy=a_policy(rules=[RULE]))
    grant(hall, rule, 0.0)
    hall.submit(a_job(gpus=2), a_job("r2/train", gpus=2, project="vision"))
    assert kinds(hall.decide()) == [(expected, "r1/train"), ("refuse", "r2/train")]
    if expected == "start":
        said = "allowed by exception ex-1 of grace until 1970-01-06 00:00 UTC: a deadline"
        assert verdict_on(hall, "r1/train", "rule.small").say == said
        assert said in [verdict.say for verdict in explain(hall.snapshot(), hall.policy, "r1/train").verdicts]


def test_what_a_rule_sees_left_counts_exceptions() -> None:
    rule = {"name": "rich", "when": "team.gpu_hours_left < 6", "say": "keep some", "mode": "block"}
    hall = a_world(policy=a_policy(teams=TEAMS, rules=[rule]))
    hall.submit(a_job("r1/train", max_duration_seconds=60.0))
    hall.decide()
    assert hall.job("r1/train").state is JobState.REFUSED
    grant(hall, amount=2.0)
    hall.submit(a_job("r2/train", max_duration_seconds=60.0))
    hall.decide()
    assert hall.job("r2/train").state is JobState.STARTING


def test_a_limit_is_what_the_policy_says_and_what_was_granted() -> None:
    hall = a_world(policy=a_policy(teams=TEAMS))
    grant(hall, amount=2.5)
    assert limit_of(hall.snapshot(), hall.policy, "nlp", "gpu_hours") == 6.5
    assert limit_of(hall.snapshot(), hall.policy, "nlp", "usd") is None
    assert limit_of(hall.snapshot(), hall.policy, "nobody", "gpu_hours") is None


ROLES: Policy = a_policy(
    teams={"nlp": {}, "vision": {"approvers": "board"}},
    roles={"capacity-approver": ["grace", "ada"], "board": ["joan"]},
)


@pytest.mark.parametrize(
    ("project", "name", "rule"),
    [
        ("nlp", "grace", None),
        ("nlp", "ada", "exception.self"),
        ("nlp", "joan", "exception.role"),
        ("vision", "joan", None),
        ("vision", "grace", "exception.role"),
        ("nobody", "grace", None),
    ],
)
def test_only_who_has_the_role_that_a_team_names_may_answer(
    project: str, name: str, rule: str | None
) -> None:
    hall = a_world(policy=ROLES)
    until = MONDAY + HOUR
    hall.fold(
        ExceptionAsked(
            at=MONDAY, actor="ada", project=project, key="k", rule="r", until=until, because="it is late"
        )
    )
    verdict = judge_answer(ROLES, hall.state.exceptions["ex-1"], name, MONDAY)
    assert verdict.allows is (rule is None)
    assert rule in (None, verdict.rule)
    assert judge_answer(ROLES, hall.state.exceptions["ex-1"], name, until).rule == "exception.expired"


def test_where_the_policy_names_nobody_nobody_may_answer() -> None:
    hall = a_world()
    hall.fold(
        ExceptionAsked(
            at=MONDAY, actor="ada", project="nlp", key="k", rule="r", until=MONDAY + 9, because="it is late"
        )
    )
    verdict = judge_answer(a_policy(), hall.state.exceptions["ex-1"], "grace", MONDAY)
    assert (verdict.allows, verdict.rule) == (False, "exception.role")
    assert "name nobody" in verdict.say
