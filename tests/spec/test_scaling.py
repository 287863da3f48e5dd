"""`scaling` and `sleep`: what may be written, and what a person reads who wrote something else."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from building import a_policy
from wattline.spec import Fault, read_facility, read_policy, shipped_policies
from wattline.spec.site import SleepDocument


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"sleep_after": "5s"}, "greater than or equal to 60"),
        ({"warm_hit": "100%"}, "less than 1"),
        ({"least_warm": 3, "most_warm": 2}, "least_warm (3) is at most most_warm (2)"),
    ],
)
def test_what_cannot_be_meant_is_refused(written: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=r".*") as caught:
        a_policy(scaling=written)
    assert told in str(caught.value)


def test_nodes_sleep_by_themselves_or_are_sent_to_sleep_but_not_both() -> None:
    with pytest.raises(ValidationError, match=r"leave power_sharing\.asleep out"):
        a_policy(scaling={}, power_sharing={"by": "meters", "asleep": "5%"})


def test_a_policy_without_scaling_has_none() -> None:
    assert a_policy().scaling is None


def test_the_shipped_policy_and_facility_go_together() -> None:
    assert "sleeping-nodes" in shipped_policies()
    scaling = read_policy("sleeping-nodes").scaling
    assert scaling is not None
    assert scaling.sleep_after == 900.0
    for site in read_facility("three-sites").sites:
        assert site.sleep is not None
        assert site.sleep.wake_seconds == 300.0


@pytest.mark.parametrize("written", [{"wake": "0s", "asleep": "5%"}, {"wake": "1min", "asleep": "100%"}])
def test_sleep_takes_some_time_to_end_and_saves_something(written: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        SleepDocument.model_validate(written)


def test_only_racks_fail_to_wake() -> None:
    fault = {"name": "f", "at": {"after": "1min"}, "wakes": False}
    assert Fault.model_validate({**fault, "rack": "zurich/r1"}).wakes is False
    with pytest.raises(ValidationError, match="a fault of a loop says flow or supply_temperature"):
        Fault.model_validate({**fault, "loop": "zurich/air"})
