"""Whatever is offered was tried: who does it gets what was said."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from building import Hall, a_job, a_policy, a_site, a_world
from wattline.checks.options import find_options
from wattline.checks.report import Option
from wattline.policy.placing.judging import judge_request
from wattline.state import JobRequest


def options(hall: Hall, request: JobRequest, wall_seconds: float | None = None) -> tuple[Option, ...]:
    return find_options(hall.snapshot(), hall.policy, request, wall_seconds)


def fits(hall: Hall, request: JobRequest) -> bool:
    return judge_request(hall.snapshot(), hall.policy, request, None).place is not None


def test_a_job_that_is_too_long_for_its_class_is_told_how_long_it_may_be() -> None:
    hall = a_world(policy=a_policy(classes={"short": {"max_duration": "1h"}}))
    request = a_job(gpus=1, scheduling_class="short", max_duration_seconds=7200.0)
    (option,) = [each for each in options(hall, request) if "max_duration" in each.change]
    assert option.effect.starts_minutes == 0.0
    assert option.effect.gpu_hours_delta == pytest.approx(-1.0)
    assert not fits(hall, request)
    assert fits(hall, msgspec.structs.replace(request, max_duration_seconds=3600.0))


def test_a_team_with_too_little_left_is_told_what_still_fits() -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"quota": {"gpu_hours": 10}}}))
    request = a_job(gpus=4, project="nlp", max_duration_seconds=4 * 3600.0)
    (option,) = [each for each in options(hall, request) if "max_duration" in each.change]
    assert option.change == "constraints.max_duration: 2.5h, which the team has left"
    assert option.effect.gpu_hours_delta == pytest.approx(-6.0)
    assert fits(hall, msgspec.structs.replace(request, max_duration_seconds=2.5 * 3600.0))


def rule(when: str) -> dict[str, Any]:
    return {"name": "no", "when": when, "say": "no", "mode": "block"}


def test_an_approval_is_offered_where_it_would_help_and_only_there() -> None:
    request = a_job(gpus=4, max_duration_seconds=3600.0)
    helps = a_world(policy=a_policy(rules=[rule("job.gpus > 1 && !job.approved")]))
    assert [each.change for each in options(helps, request)] == ["have the run approved"]
    never = a_world(policy=a_policy(rules=[rule("job.gpus > 1")]))
    assert options(never, request) == ()


def test_what_runs_as_asked_is_offered_less_power_where_that_saves() -> None:
    hall = a_world(a_site())
    request = a_job(gpus=8, max_duration_seconds=36000.0)
    for option in options(hall, request):
        effect = option.effect
        assert effect.cost_usd_delta is not None
        assert effect.carbon_kg_delta is not None
        assert min(effect.cost_usd_delta, effect.carbon_kg_delta) < 0.0


def test_nothing_is_offered_to_what_costs_nothing() -> None:
    assert options(a_world(), a_job(gpus=0, max_duration_seconds=60.0)) == ()
