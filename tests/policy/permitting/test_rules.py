"""What a policy's rules say is remembered by what they speak of, and by nothing less."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import a_job, a_policy, a_site, a_world
from wattline.policy.permitting.rules import judge_rules, rule_values
from wattline.spec import RULE_STRUCTS, compile_expression
from wattline.spec.policy import Policy
from wattline.state import JobRequest, Outcome

WRITTEN = (
    "job.gpus >= 4 && !job.approved",
    "job.peak_watts > 500.0 * job.gpus",
    'job["gpus"] == 3',
    "job.gpu.exists(one, one == 'A100') || size(job.gpu) > 1",
    "team.gpu_hours_left < 10 * job.gpus",
    "has(job.owner) && job.owner == ''",
)


def a_ruled_policy(*, quota: bool) -> Policy:
    rules = [
        {"name": f"rule-{number}", "when": when, "say": when, "mode": "warn"}
        for number, when in enumerate(WRITTEN)
    ]
    teams = {"nlp": {"quota": {"gpu_hours": 40}}} if quota else {}
    return a_policy(rules=rules, teams=teams)


POLICIES = {quota: a_ruled_policy(quota=quota) for quota in (False, True)}  # their memory is what is tested
HALL = a_world(a_site())


def evaluated(policy: Policy, request: JobRequest) -> list[str]:
    """Every rule anew, from all that there is to know."""
    values = rule_values(HALL.snapshot(), request, policy)
    return [
        f"rule.{rule.name}"
        for rule in policy.rules
        if compile_expression(rule.when, (), RULE_STRUCTS).holds(values)
    ]


@given(
    gpus=st.integers(1, 8),
    watts=st.sampled_from([None, 400.0, 900.0, 3000.0]),
    models=st.sampled_from([(), ("A100",), ("H100",), ("H100", "A100")]),
    approved=st.booleans(),
    owner=st.sampled_from(["", "nlp"]),
    quota=st.booleans(),
)
def test_what_is_remembered_is_what_would_be_evaluated(
    gpus: int, watts: float | None, models: tuple[str, ...], approved: bool, owner: str, quota: bool
) -> None:
    policy = POLICIES[quota]
    request = a_job(
        gpus=gpus, peak_watts=watts, gpu_models=models, approved=approved, owner=owner, project="nlp"
    )
    said = judge_rules(HALL.snapshot(), request, policy)
    assert [verdict.rule for verdict in said] == evaluated(policy, request)
    assert all(verdict.outcome is Outcome.WARN for verdict in said)


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("job.gpus >= 64 && !job.approved", (("job", "gpus"), ("job", "approved"))),
        ("team.gpu_hours_left < 8 * job.gpus", (("team", "gpu_hours_left"), ("job", "gpus"))),
        ("job.gpu.all(one, one != 'A100')", (("job", "gpu"),)),
        ('job["gpus"] > 2', None),
    ],
)
def test_an_expression_says_which_fields_it_speaks_of(
    text: str, inputs: tuple[tuple[str, str], ...] | None
) -> None:
    assert compile_expression(text, (), RULE_STRUCTS).inputs == inputs
