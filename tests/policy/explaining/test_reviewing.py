"""What a policy says that this facility cannot do is told, and refuses nothing."""

from __future__ import annotations

from building import a_facility, a_policy, a_site
from wattline.policy.explaining.reviewing import review_policy
from wattline.state import Plant


def test_a_grid_event_at_a_site_that_is_not_here_is_told_and_others_are_not() -> None:
    event = {"at": "2026-05-01T14:00Z", "lasts": "3h", "watts": "5kW"}
    holds = [{"name": "dso", "site": "zurich", **event}, {"name": "typo", "site": "zurihc", **event}]
    policy = a_policy(power_sharing={"by": "caps", "holds": holds})
    assert review_policy(policy, Plant(a_facility())) == [
        "power_sharing.holds: typo is about site zurihc, and test has zurich: nobody keeps it"
    ]


def test_quotas_above_what_the_facility_can_give_are_told_with_both_numbers() -> None:
    plant = Plant(a_facility(a_site(nodes=2, gpus=8)))
    teams = {name: {"quota": {"gpu_hours": 1344.0, "usd": 10}} for name in ("nlp", "vision")}
    assert review_policy(a_policy(teams=teams), plant) == []
    teams["nlp"]["quota"]["gpu_hours"] = 1345.0
    (warning,) = review_policy(a_policy(teams=teams), plant)
    assert warning == (
        "quotas of 2 teams add up to 2,689 GPU-hours a week; flat out, all of test comes to 2,688"
    )
