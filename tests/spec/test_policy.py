from __future__ import annotations

from collections.abc import Callable

import pytest

from wattline.errors import Problem
from wattline.spec import Mode, Policy, parse_document


def test_an_empty_policy_has_defaults_for_everything() -> None:
    policy = parse_document(b"policy: mine\n", Policy, file="policy.yaml")
    assert policy.thresholds.reading_max_age == 30.0
    assert policy.rules == ()
    assert policy.teams == {}


def test_rules_and_quotas_are_read() -> None:
    policy = parse_document(
        b"""
        policy: mine
        teams: {nlp: {quota: {gpu_hours: 2000, usd: 5000, kwh: 3MWh, kg_co2e: 0.5t}, limit: soft}}
        rules: [{name: big, when: job.gpus > 64 && team.usd_left < 100, say: too big, mode: block}]
        """,
        Policy,
        file="policy.yaml",
    )
    assert policy.teams["nlp"].quota.kwh == 3000.0
    assert policy.teams["nlp"].quota.kg_co2e == 500.0
    assert policy.rules[0].mode is Mode.BLOCK


@pytest.mark.parametrize(
    ("text", "place", "field", "message", "nearest"),
    [
        (
            "rules: [{name: r, when: job.gpuz > 3, say: x}]",
            (1, 25),
            "rules[0].when",
            "job has no 'gpuz'",
            "gpu",
        ),
        ("rules: [{name: r, when: gpus > 3, say: x}]", (1, 25), "rules[0].when", "unknown name 'gpus'", None),
        (
            "rules: [{name: r, when: job.gpus, mode: bloc, say: x}]",
            (1, 41),
            "rules[0].mode",
            "not one",
            "block",
        ),
        ("rules: [{name: r, when: '1 + 1', say: x}]", (1, 25), "rules[0].when", "this one is a double", None),
        ("rules: [{name: r, when: '', say: x}]", (1, 25), "rules[0].when", "too short", None),
        ("teams: {a: {quota: {usd: -5}}}", (1, 26), "teams.a.quota.usd", "too small", None),
        ("teams: {a: {weight: .nan}}", (1, 21), "teams.a.weight", "finite", None),
        (
            "teams: {a: {quota: {gpu_hour: 5}}}",
            (1, 21),
            "teams.a.quota.gpu_hour",
            "unknown field",
            "gpu_hours",
        ),
        ("thresholds: {settle: 30}", (1, 22), "thresholds.settle", "needs a unit", None),
        ("thresholds: {power_margin: 120%}", (1, 28), "thresholds.power_margin", "between 0 and 1", None),
        ("required_metadata: [modle]", (1, 21), "required_metadata[0]", "not one", "model"),
        ("classes: {a: {priority: -1}}", (1, 25), "classes.a.priority", "too small", None),
        ("policy: a\nthreshold: {}", (2, 1), "threshold", "unknown field", "thresholds"),
    ],
)
def test_a_wrong_policy_is_told_with_its_place(
    faults_in: Callable[..., tuple[Problem, ...]],
    text: str,
    place: tuple[int, int],
    field: str,
    message: str,
    nearest: str | None,
) -> None:
    (problem,) = faults_in(text, Policy)
    assert ((problem.line, problem.column), problem.field) == (place, field)
    assert message in problem.message
    assert problem.nearest == nearest


def test_two_rules_of_one_name_are_refused(faults_in: Callable[..., tuple[Problem, ...]]) -> None:
    rule = "{name: r, when: job.approved, say: x}"
    (problem,) = faults_in(f"rules:\n  - {rule}\n  - {rule}\n", Policy)
    assert (problem.line, problem.column, problem.field) == (3, 12, "rules[1].name")


def test_a_class_that_no_policy_has_is_not_this_readers_business() -> None:
    assert parse_document(b"policy: mine\nclasses: {}\n", Policy, file="policy.yaml").classes == {}
