"""`power_sharing`: off unless said, holds need it, and times and watts are written with their units."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from wattline.spec.policy import Policy

HOLD = {"name": "grid", "site": "zurich", "at": "2026-01-05T14:00:00Z", "lasts": "3h", "watts": "450kW"}


def test_power_is_not_shared_unless_the_policy_says_so() -> None:
    assert not Policy().power_sharing.is_on
    assert Policy.model_validate({"power_sharing": {"by": "meters"}}).power_sharing.is_on


def test_a_hold_is_on_from_its_first_second_until_it_is_over() -> None:
    policy = Policy.model_validate({"power_sharing": {"by": "caps", "holds": [HOLD]}})
    (hold,) = policy.power_sharing.holds
    begins_at = hold.at.timestamp()
    assert hold.watts == 450_000
    assert [hold.is_on(begins_at + after) for after in (-1, 0, 10_799, 10_800)] == [False, True, True, False]
    assert hold.next_change_at(begins_at - 5) == begins_at
    assert hold.next_change_at(begins_at) == begins_at + 10_800
    assert hold.next_change_at(begins_at + 10_800) is None


@pytest.mark.parametrize(
    "document",
    [
        {"holds": [HOLD]},
        {"by": "caps", "holds": [HOLD | {"watts": "0W"}]},
        {"by": "caps", "holds": [HOLD | {"lasts": "0s"}]},
        {"by": "caps", "holds": [HOLD | {"at": "2026-01-05T14:00:00"}]},
        {"by": "caps", "least_cap": "0%"},
        {"by": "caps", "guard": "100%"},
        {"by": "guess"},
    ],
)
def test_what_cannot_be_kept_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate({"power_sharing": document})
