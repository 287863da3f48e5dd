"""Capping: where nothing sets power limits nobody is capped, by no stage, and that is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from building import Hall, a_job, a_ladder, a_link, a_policy, a_site, a_world, kinds
from wattline.policy import explain
from wattline.spec import Policy
from wattline.state import ActionKind

LADDER = a_ladder({"cap_power": "50%"}, {"pause": "2h"})


def a_hall(*, caps_power: bool, policy: Policy | None = None, **site: object) -> Hall:
    fields = {"telemetry": "emulated", "rack_cap_watts": 4000.0, **site}
    known = replace(a_site(**fields), caps_power=caps_power)  # type: ignore[arg-type]
    hall = a_world(known, policy=policy or a_policy(thresholds={"power_margin": "0%"}))
    for subject, quantity in (
        ("zurich/r1", "rack_watts"),
        ("zurich/feed-a", "supply_watts"),
        ("zurich/loop", "loop_heat_watts"),
    ):
        hall.read(subject, quantity, 100.0)
    return hall


def pressed(hall: Hall) -> None:
    hall.wait(5.0)
    hall.read("zurich/r1", "rack_watts", 4400.0)


@pytest.mark.parametrize(("caps_power", "kind"), [(True, "cap_power"), (False, "pause")])
def test_a_cap_is_offered_only_where_something_sets_limits(caps_power: bool, kind: str) -> None:
    hall = a_hall(caps_power=caps_power)
    hall.run(a_job(gpus=8, ladder=LADDER, checkpoints=True))
    pressed(hall)
    assert kinds(hall.decide()) == [(kind, "r1/train")]


def test_where_a_cap_was_the_only_rung_it_is_said_that_none_is_left_and_why() -> None:
    hall = a_hall(caps_power=False)
    hall.run(a_job(gpus=8, ladder=a_ladder({"cap_power": "50%"})))
    pressed(hall)
    decision = hall.decide()
    assert decision.actions == ()
    (verdict,) = decision.verdicts
    assert verdict.say == (
        "no rung of its ladder is left; cap_power is not offered: nothing at zurich sets power limits"
    )


@pytest.mark.parametrize(("caps_power", "told"), [(True, []), (False, ["ladder.cap_power"])])
def test_explain_says_that_it_is_not_offered(caps_power: bool, told: list[str]) -> None:
    hall = a_hall(caps_power=caps_power)
    hall.run(a_job(gpus=8, ladder=LADDER))
    verdicts = explain(hall.snapshot(), hall.policy, "r1/train").verdicts
    assert [verdict.rule for verdict in verdicts if verdict.rule.startswith("ladder.")] == told


def test_power_sharing_caps_nobody_there() -> None:
    policy = a_policy(power_sharing={"by": "caps"}, thresholds={"power_margin": "0%"})
    capped: dict[bool, list[float]] = {}
    for caps_power in (True, False):
        hall = a_hall(caps_power=caps_power, policy=policy)
        for number in range(2):  # the second fits only if the first draws less
            hall.submit(a_job(f"r{number}/train", gpus=8, ladder=LADDER, checkpoints=True))
        for _ in range(5):
            decision = hall.decide()
            hall.obey(decision)
            hall.wait(30.0)
            hall.read("zurich/r1", "rack_watts", 3000.0)
            hall.read("zurich/feed-a", "supply_watts", 3000.0)
        actions = [action for decision in hall.decisions for action in decision.actions]
        capped[caps_power] = [
            action.fraction
            for action in actions
            if action.fraction < 1.0 and action.kind is not ActionKind.SHRINK_BATCH
        ]
    assert capped[True]
    assert capped[False] == []


def test_a_capped_start_goes_to_the_site_that_can_cap() -> None:
    policy = a_policy(power_sharing={"by": "caps"}, thresholds={"power_margin": "0%"})
    fields = {"nodes": 1, "rack_cap_watts": 2000.0, "telemetry": "nvml"}
    sites = [
        replace(a_site("zurich", **fields), caps_power=False),  # type: ignore[arg-type]
        a_site("paris", **fields),  # type: ignore[arg-type]
    ]
    hall = a_world(*sites, links=[a_link(("zurich", "paris"))], policy=policy)
    hall.submit(a_job(gpus=8, ladder=LADDER, checkpoints=True))
    (action,) = hall.decide().actions
    assert action.place is not None
    assert action.place.site == "paris"
    assert action.fraction < 1.0
