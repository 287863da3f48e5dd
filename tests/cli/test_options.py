from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from wattline.cli.options import FACILITIES, PLANS, POLICIES, SCENARIOS
from wattline.spec.shipped import (
    shipped_facilities,
    shipped_plans,
    shipped_policies,
    shipped_scenarios,
)


@pytest.mark.parametrize(
    ("named", "shipped"),
    [
        (FACILITIES, shipped_facilities),
        (POLICIES, shipped_policies),
        (SCENARIOS, shipped_scenarios),
        (PLANS, shipped_plans),
    ],
)
def test_help_names_whatever_ships(named: str, shipped: Callable[[], dict[str, Path]]) -> None:
    assert named.split(", ") == sorted(shipped())
