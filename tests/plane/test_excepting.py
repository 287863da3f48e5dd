from __future__ import annotations

import pytest

from building import a_policy
from wattline.errors import UsageError
from wattline.plane.excepting import LONGEST_SECONDS, check_rule, parse_amount, parse_until, trouble_of
from wattline.state import ExceptionAsked

POLICY = a_policy(
    teams={"nlp": {"quota": {"gpu_hours": 4, "usd": 9}}},
    rules=[{"name": "small", "when": "job.gpus > 1", "say": "one GPU each", "mode": "block"}],
)
NOW = 1_794_787_200.0  # 2026-11-16T00:00Z


@pytest.mark.parametrize(
    ("written", "meant"),
    [("quota", "quota.gpu_hours"), ("rule.small", "small"), ("duration.team", "duration.team")],
)
def test_a_rule_may_be_named_as_people_name_it(written: str, meant: str) -> None:
    assert check_rule(POLICY, "nlp", written) == meant


@pytest.mark.parametrize(
    ("project", "rule", "said"),
    [
        ("nlp", "smal", "did you mean small?"),
        ("nlp", "budget.kwh", "it has quota.gpu_hours, budget.usd"),
        ("npl", "budget.usd", "did you mean nlp?"),
        ("nlp", "residency.team", "known here"),
    ],
)
def test_a_rule_that_is_not_there_is_told_with_what_is(project: str, rule: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_rule(POLICY, project, rule)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("rule", "text", "amount"),
    [
        ("quota.gpu_hours", "500", 500.0),
        ("budget.usd", "12.5", 12.5),
        ("budget.kwh", "3MWh", 3000.0),
        ("budget.kg_co2e", "0.5t", 500.0),
        ("small", None, 0.0),
    ],
)
def test_an_amount_is_in_the_unit_of_its_quota(rule: str, text: str | None, amount: float) -> None:
    assert parse_amount(rule, text) == amount


@pytest.mark.parametrize(
    ("rule", "text", "said"),
    [
        ("quota.gpu_hours", None, "missing"),
        ("quota.gpu_hours", "-3", "above 0"),
        ("quota.gpu_hours", "nan", "above 0"),
        ("quota.gpu_hours", "1e99", "at most"),
        ("quota.gpu_hours", "many", "many"),
        ("budget.usd", "3kWh", "unknown unit"),
        ("small", "3", "has no amount"),
    ],
)
def test_an_amount_that_is_none_is_told(rule: str, text: str | None, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_amount(rule, text)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3d", 3 * 86400.0), ("2026-11-16T01:00Z", 3600.0), ("2026-11-16T02:00+01:00", 3600.0)],
)
def test_an_end_is_a_time_or_how_long_from_now(text: str, seconds: float) -> None:
    assert parse_until(text, NOW) == NOW + seconds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2020-01-01T00:00Z", "within a year"),
        ("900d", "within a year"),
        ("0s", "within a year"),
        ("2026-12-01T00:00", "its zone"),
        ("2d3", "neither a time nor a duration"),
    ],
)
def test_an_end_that_is_none_is_told(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_until(text, NOW)
    assert said in str(raised.value)


def asked(**changes: object) -> ExceptionAsked:
    fields: dict[str, object] = {
        "at": NOW,
        "actor": "ada",
        "project": "nlp",
        "key": "k",
        "rule": "quota.gpu_hours",
        "amount": 3.0,
        "until": NOW + 60,
        "because": "a deadline",
    }
    return ExceptionAsked(**(fields | changes))  # type: ignore[arg-type]


def test_a_request_that_is_right_may_be_journaled() -> None:
    assert trouble_of(asked(), None, POLICY) == ""
    assert trouble_of(asked(rule="small", amount=0.0), None, POLICY) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"project": "../nlp"},
        {"rule": "smal"},
        {"because": ""},
        {"because": "x" * 501},
        {"key": "k" * 65},
        {"until": NOW},
        {"until": NOW + LONGEST_SECONDS + 1},
        {"until": float("nan")},
        {"amount": float("inf")},
        {"amount": 0.0},
        {"amount": -1.0},
        {"rule": "small", "amount": 1.0},
    ],
    ids=str,
)
def test_a_request_that_came_some_other_way_is_looked_at_as_closely(changes: dict[str, object]) -> None:
    assert trouble_of(asked(**changes), None, POLICY)
