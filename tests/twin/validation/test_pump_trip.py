"""Check 5: what a stopped pump does to cold plates and to tanks, while nobody reacts."""

from __future__ import annotations

import pytest

from twin.truth.sites import a_fault, a_site
from twin.validation.twins import HOUR, Twin, a_setting, fill_up, watch
from wattline.facility import CoolingKind, Facility
from wattline.twin.baselines import decide_blind
from wattline.twin.run import BEGINS_AT

STOPS = a_fault("1h", lasts="10min", loop="loop", flow="0%")


def flat_out(kind: CoolingKind, supply_celsius: float, seed: int) -> Twin:
    facility = Facility(name="test", sites=(a_site(kind, supply_celsius=supply_celsius),))
    work = fill_up(facility)
    return watch(
        a_setting(facility, work, faults=[STOPS], seed=seed, decide=decide_blind, until_seconds=2 * HOUR)
    )


def seconds_to(twin: Twin, kind: str) -> float:
    """From the stop to the first of its kind."""
    return twin.seen(kind)[0].incident.at - BEGINS_AT - HOUR


@pytest.mark.parametrize("seed", range(8))
def test_cold_plates_throttle_within_a_minute_and_tanks_ride_longer(seed: int) -> None:
    plates, tanks = (
        flat_out(CoolingKind.DIRECT_TO_CHIP, 30.0, seed),
        flat_out(CoolingKind.IMMERSION, 38.0, seed),
    )
    assert 0.0 < seconds_to(plates, "pace") < seconds_to(plates, "off") < 60.0
    assert seconds_to(tanks, "pace") > 3.0 * seconds_to(plates, "pace")
    assert tanks.truth.tally.shutdowns == 0
