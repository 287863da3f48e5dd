"""Check 3: temperatures follow the closed form, whatever else happens in between, and no joule is lost."""

from __future__ import annotations

import math
from random import Random

import msgspec
import pytest

from twin.truth.sites import a_site
from twin.validation.twins import HOUR, a_setting, an_arrival, build, some_faults, some_work, two_sites, watch
from wattline.facility import CoolingKind, Facility
from wattline.physics import thermal_parameters
from wattline.policy import decide
from wattline.policy.naming import next_action
from wattline.spec import Policy
from wattline.state import ActionKind, AttemptEnded, Decision, JobState, Snapshot
from wattline.twin.baselines import BASELINES, decide_blind
from wattline.twin.run import BEGINS_AT
from wattline.twin.workload import Arrival
from wattline.units import JOULES_PER_KWH

DIE_SECONDS = {
    CoolingKind.AIR: 45.0,
    CoolingKind.REAR_DOOR: 45.0,
    CoolingKind.DIRECT_TO_CHIP: 10.0,
    CoolingKind.IMMERSION: 20.0,
}
RESIDUAL = 1e-6


def risen(seconds: float, lag_seconds: float) -> float:
    return 1.0 - math.exp(-seconds / lag_seconds)


def risen_through_both(seconds: float, slow: float, fast: float) -> float:
    """How much of a step has come through two lags in a row."""
    if slow == fast:
        return 1.0 - (1.0 + seconds / slow) * math.exp(-seconds / slow)
    return 1.0 - (slow * math.exp(-seconds / slow) - fast * math.exp(-seconds / fast)) / (slow - fast)


@pytest.mark.parametrize("kind", list(CoolingKind))
def test_the_start_of_a_job_warms_its_die_as_the_closed_form_says(kind: CoolingKind) -> None:
    facility = Facility(name="test", sites=(a_site(kind, nodes=1, supply_celsius=15.0),))
    arrivals = [an_arrival("job", 60.0, 8, HOUR, utilisation=0.7)]
    idle = build(a_setting(facility, arrivals, exact=True))
    spot = idle.state.plant.spots[0]
    loop, rest_celsius = spot.loop, idle.truth.node_celsius(0, BEGINS_AT)
    idle_watts, idle_heat_watts = (
        idle.truth.node_gpu_watts(0),
        idle.truth.resource_watts(spot.loop_resource),
    )
    assert spot.node.device is not None
    kelvin_per_watt = thermal_parameters(spot.node.device, loop).kelvin_per_watt
    for seconds in (1.0, 10.0, 30.0, 60.0, 300.0, 3000.0):
        asked = a_setting(facility, arrivals, exact=True, decide=decide_blind, until_seconds=60.0 + seconds)
        truth = watch(asked).truth
        own_kelvin = kelvin_per_watt * (truth.node_gpu_watts(0) - idle_watts)
        heat_watts = truth.resource_watts(spot.loop_resource) - idle_heat_watts
        shared_kelvin = heat_watts * loop.approach_kelvin / loop.capacity_watts
        fast = DIE_SECONDS[kind]
        expected = (
            rest_celsius
            + own_kelvin * risen(seconds, fast)
            + shared_kelvin * risen_through_both(seconds, loop.time_constant_seconds, fast)
        )
        assert own_kelvin > 5.0
        assert truth.node_celsius(0, BEGINS_AT + 60.0 + seconds) == pytest.approx(expected, abs=0.1)


def refusals(chance: Random) -> list[Arrival]:
    """Jobs that are refused when they come: each is a reason to touch everything and change nothing."""
    return [an_arrival(f"refused-{n}", chance.uniform(0.0, 2 * HOUR), 640, 60.0) for n in range(100)]


def fidget(snapshot: Snapshot, policy: Policy) -> Decision:
    """Power-blind; whenever someone is refused, every job that runs is given the cap it has."""
    decision = decide_blind(snapshot, policy)
    if not any(action.kind is ActionKind.REFUSE for action in decision.actions):
        return decision
    running = [job for job in map(snapshot.job, snapshot.holding) if job.state is JobState.RUNNING]
    touched = tuple(next_action(job, ActionKind.CAP_POWER, fraction=1.0) for job in running)
    return msgspec.structs.replace(decision, actions=decision.actions + touched)


@pytest.mark.parametrize("seed", range(5))
def test_a_run_does_not_depend_on_how_events_are_spaced(seed: int) -> None:
    chance = Random(seed)
    work, faults = some_work(chance), some_faults(chance)
    asked = {"faults": faults, "seed": seed, "decide": fidget, "until_seconds": 2 * HOUR}
    calm, busy = (
        watch(a_setting(two_sites(), arrivals, **asked)) for arrivals in (work, work + refusals(chance))
    )
    assert busy.world.tally.refused.total() == calm.world.tally.refused.total() + 100
    assert busy.world.tally.completed == calm.world.tally.completed > 3
    assert list(busy.world.tally.completion_seconds) == pytest.approx(
        list(calm.world.tally.completion_seconds), abs=1e-4
    )
    ends_at = BEGINS_AT + 2 * HOUR
    for node in range(len(calm.state.plant.spots)):
        before = calm.truth.node_celsius(node, ends_at)
        assert busy.truth.node_celsius(node, ends_at) == pytest.approx(before, abs=1e-4)
    for name, site in calm.truth.tally.sites.items():
        assert busy.truth.tally.sites[name].it_joules == pytest.approx(site.it_joules, rel=1e-9)


@pytest.mark.parametrize("policy", ["default", *BASELINES])
@pytest.mark.parametrize("seed", range(3))
def test_every_joule_of_a_run_belongs_to_a_job_or_to_nobody(policy: str, seed: int) -> None:
    chance = Random(seed)
    by = BASELINES.get(policy, decide)
    work, faults = some_work(chance), some_faults(chance)
    twin = watch(a_setting(two_sites(), work, faults=faults, seed=seed, decide=by, until_seconds=8 * HOUR))
    accounts = twin.truth.tally.sites.values()
    assert all(site.it_joules > site.job_joules > 0.0 for site in accounts)
    assert all(site.residual < RESIDUAL for site in accounts)
    ended = [event for record in twin.records for event in record.events if isinstance(event, AttemptEnded)]
    told_joules = sum(event.usage.kwh for event in ended) * JOULES_PER_KWH / 1.25  # the sites' stated PUE
    running = set(twin.state.holding)
    for event in twin.world.events():
        if isinstance(event, AttemptEnded):
            told_joules += event.usage.kwh * JOULES_PER_KWH / 1.25
            running.discard(event.job)
    told_joules += sum(twin.truth.unload(job, twin.truth.now) for job in running)
    assert told_joules == pytest.approx(sum(site.job_joules for site in accounts), rel=RESIDUAL)
