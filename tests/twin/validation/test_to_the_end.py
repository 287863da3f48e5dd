"""A run counts up to its last second, waits for those who may yet be served, and ends all the same."""

from __future__ import annotations

import pytest

from twin.truth.sites import a_fault, a_site
from twin.validation.twins import HOUR, a_setting, an_arrival, watch
from wattline.facility import Facility
from wattline.twin.baselines import decide_blind, decide_tiresias
from wattline.twin.run import BEGINS_AT, run

HALL = Facility(name="test", sites=(a_site(nodes=1),))


def test_energy_is_counted_up_to_the_horizon() -> None:
    """Long after the last change: nothing happens between the first second and the end."""
    work = [an_arrival("job", 0.0, 8, 9 * HOUR, utilisation=0.5)]
    twin = watch(a_setting(HALL, work, decide=decide_blind, until_seconds=2 * HOUR))
    watts = twin.truth.resource_watts(twin.state.plant.resource_number["zurich/feed-a"])
    assert twin.truth.tally.sites["zurich"].it_joules == pytest.approx(watts * 2 * HOUR)


def test_a_job_whose_only_node_went_off_goes_on_when_it_is_back() -> None:
    work = [an_arrival("job", 0.0, 8, 2 * HOUR)]
    stops = a_fault("1h", lasts="2min", loop="loop", flow="0%")
    report = run(a_setting(HALL, work, faults=[stops], decide=decide_blind)).report
    assert report.shutdowns > 0
    assert report.jobs.completed == 1
    assert report.useful_gpu_hours == pytest.approx(16.0)


def test_who_waits_for_what_never_comes_back_does_not_keep_a_run_going() -> None:
    work = [an_arrival("job", 0.0, 8, 2 * HOUR)]
    lost = a_fault("1h", supply="feed-a", rating="0%")
    for decide, hours in ((decide_blind, 1.1), (decide_tiresias, 1.1 + 7 * 24)):
        twin = watch(a_setting(HALL, work, faults=[lost], decide=decide))
        assert twin.world.tally.waiting == 1
        assert twin.world.now() - BEGINS_AT <= hours * HOUR
