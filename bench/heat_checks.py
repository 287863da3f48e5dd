"""Where the answer is known, is it what the heat of whole runs comes to? Sections 3 to 5 of validation.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

import msgspec

from bench.whole_runs import (
    POLICIES,
    WholeRun,
    a_fault,
    a_setting,
    an_arrival,
    capped,
    fill_up,
    one_site,
    rough_runs,
    run_whole,
    some_faults,
    some_work,
)
from wattline.facility import CoolingKind, Facility, Loop
from wattline.physics import thermal_parameters
from wattline.physics.throttle import SHUTDOWN_HYSTERESIS_KELVIN
from wattline.policy.naming import next_action
from wattline.spec import Policy
from wattline.state import (
    ActionKind,
    Decision,
    JobState,
    Snapshot,
)
from wattline.twin.baselines import decide_blind
from wattline.twin.replaying import read_rules
from wattline.twin.run import BEGINS_AT, run
from wattline.twin.scenario import read_stage, setting_of
from wattline.units import SECONDS_PER_HOUR

# A loop of each kind in the facility that ships as three-sites, and the GPUs on it.
LOOPS = (
    ("ashburn", "crah", "A100"),
    ("ashburn", "doors", "H100"),
    ("lulea", "cdu-1", "H100"),
    ("lulea", "cdu-2", "B200"),
    ("singapore", "tanks", "H200"),
)
_DIE_SECONDS = {
    CoolingKind.AIR: 45.0,
    CoolingKind.REAR_DOOR: 45.0,
    CoolingKind.DIRECT_TO_CHIP: 10.0,
    CoolingKind.IMMERSION: 20.0,
}
_SEEDS = range(2)
_STOPS_SECONDS = 3600


def loop_of(facility: Facility, name: str) -> Loop:
    return next(loop for site in facility.sites for loop in site.loops if loop.name.endswith(f"/{name}"))


@cache
def stopped(site: str, loop: str, policy: str, seed: int) -> WholeRun:
    """Every node flat out for an hour, then a pump or fan that stands still for ten minutes."""
    facility = one_site(site)
    stops = a_fault(_STOPS_SECONDS, lasts="10min", loop=f"{site}/{loop}", flow="0%")
    return run_whole(
        a_setting(
            facility,
            fill_up(facility),
            faults=[stops],
            seed=seed,
            decide=POLICIES[policy],
            until_seconds=1.5 * 3600,
        )
    )


# 3 Step response, spacing of events, energy balance.


def print_step() -> None:
    print("\n3. one job starts: hottest die against the closed form of two lags, 1 s to 3000 s after")
    for site, loop, device in LOOPS:
        facility = one_site(site)
        kind = loop_of(facility, loop).kind
        errors = [
            step_error(facility, loop_of(facility, loop), device, after)
            for after in (1, 10, 30, 60, 300, 3000)
        ]
        print(f"{site + '/' + loop:<16} {kind:<15} {device}: at most {max(errors):.1e} K")
    work = some_work(Random(1))
    faults = some_faults(Random(2))
    refused = [an_arrival(f"no-{n}", Random(n).uniform(0, 3 * 3600), 4096, 1.0) for n in range(300)]
    calm, busy = (
        run_whole(a_setting(one_site("lulea"), jobs, faults=faults, decide=fidget, until_seconds=3 * 3600))
        for jobs in (work, work + refused)
    )
    ends_at = BEGINS_AT + 3 * 3600
    kelvin = max(
        abs(busy.truth.node_celsius(node, ends_at) - calm.truth.node_celsius(node, ends_at))
        for node in range(len(calm.state.plant.spots))
    )
    pairs = zip(busy.world.tally.completion_seconds, calm.world.tally.completion_seconds, strict=True)
    seconds = max(abs(one - other) for one, other in pairs)
    print(
        f"every job that runs touched 300 times more, and changed in nothing: {kelvin:.1e} K and "
        f"{seconds:.1e} s over {calm.world.tally.completed} jobs"
    )
    residuals = [
        site.residual for whole in rough_runs().values() for site in whole.truth.tally.sites.values()
    ]
    print(f"energy balance of {len(residuals)} runs with faults: residual at most {max(residuals):.1e}")


def fidget(snapshot: Snapshot, policy: Policy) -> Decision:
    """Power-blind; whenever someone is refused, every job that runs is given the cap it has."""
    decision = decide_blind(snapshot, policy)
    if not any(action.kind is ActionKind.REFUSE for action in decision.actions):
        return decision
    running = [job for job in map(snapshot.job, snapshot.holding) if job.state is JobState.RUNNING]
    touched = tuple(next_action(job, ActionKind.CAP_POWER, fraction=1.0) for job in running)
    return msgspec.structs.replace(decision, actions=decision.actions + touched)


def step_error(facility: Facility, loop: Loop, device: str, after_seconds: float) -> float:
    """How far a whole run is from the closed form, so long after a job began on one node."""
    arrival = an_arrival("job", 60.0, 8, 2.0, 0.7, gpu_models=(device,))
    setting = a_setting(facility, [arrival], exact=True, decide=decide_blind)
    rest = run_whole(replace(setting, until_seconds=0.0))
    whole = run_whole(replace(setting, until_seconds=60.0 + after_seconds))
    node = whole.state.plant.node_number[place_of(whole)]
    spot = whole.state.plant.spots[node]
    assert spot.node.device is not None
    assert spot.loop is loop
    own_kelvin = thermal_parameters(spot.node.device, loop).kelvin_per_watt * (
        whole.truth.node_gpu_watts(node) - rest.truth.node_gpu_watts(node)
    )
    heat_watts = whole.truth.resource_watts(spot.loop_resource) - rest.truth.resource_watts(
        spot.loop_resource
    )
    slow, fast = loop.time_constant_seconds, _DIE_SECONDS[loop.kind]
    expected = (
        rest.truth.node_celsius(node, BEGINS_AT)
        + own_kelvin * (1.0 - math.exp(-after_seconds / fast))
        + heat_watts
        * loop.approach_kelvin
        / loop.capacity_watts
        * risen_through_both(after_seconds, slow, fast)
    )
    return abs(whole.truth.node_celsius(node, BEGINS_AT + 60.0 + after_seconds) - expected)


def place_of(whole: WholeRun) -> str:
    return next(
        action.place.nodes[0][0]
        for record in whole.records
        for action in record.decision.actions
        if action.place
    )


def risen_through_both(seconds: float, slow: float, fast: float) -> float:
    if slow == fast:
        return 1.0 - (1.0 + seconds / slow) * math.exp(-seconds / slow)
    return 1.0 - (slow * math.exp(-seconds / slow) - fast * math.exp(-seconds / fast)) / (slow - fast)


# 4 Limits and what held a job back.


def print_limits() -> None:
    print("\n4. a stopped pump or fan, power-blind: die °C when it happened, and the device's limit")
    for site, loop, device in LOOPS:
        wholes = [stopped(site, loop, "power-blind", seed) for seed in _SEEDS]
        spot = next(spot for spot in wholes[0].state.plant.spots if spot.loop.name == f"{site}/{loop}")
        limits = spot.node.device
        assert limits is not None
        on_loop = set(wholes[0].truth.nodes_on(spot.loop_resource))
        throttled = [
            max(celsius[node] for node in on_loop)
            for whole in wholes
            for _, celsius in whole.seen("pace")[:1]
        ]
        off, on = (
            [
                celsius[node]
                for whole in wholes
                for incident, celsius in whole.seen(kind)
                for node in incident.nodes
            ]
            for kind in ("off", "on")
        )
        print(
            f"{site + '/' + loop:<16} {device}: throttles {span(throttled)} ({limits.throttle_celsius:g}),"
            f" off {span(off)} ({limits.shutdown_celsius:g}),"
            f" on again {span(on)} ({limits.shutdown_celsius - SHUTDOWN_HYSTERESIS_KELVIN:g})"
        )
    print("GPU-hours held back, by heat and by power")
    stop = stopped("lulea", "cdu-1", "power-blind", 0)
    print(f"  pump stopped, power-blind        {held_back(stop)}")
    facility = one_site("lulea")
    brownout = [a_fault(3600, lasts="20min", supply=f"lulea/{feed}", rating="40%") for feed in "ab"]
    asked = a_setting(facility, fill_up(facility), faults=brownout, until_seconds=2 * 3600)
    print(f"  both feeds at 40 %, default      {held_back(run_whole(asked))}")
    asked = a_setting(facility, fill_up(facility), decide=capped(0.6), until_seconds=3600)
    print(f"  a cap of 60 % for all, no fault  {held_back(run_whole(asked))}")


def span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}" if values else "never"


def held_back(whole: WholeRun) -> str:
    tally = whole.truth.tally
    heat, power = tally.heat_throttle_gpu_seconds, tally.power_throttle_gpu_seconds
    return f"{heat / SECONDS_PER_HOUR:>7.1f} {power / SECONDS_PER_HOUR:>7.1f}"


# 5 Pump trip.


def print_pump_trip() -> None:
    print("\n5. a stopped pump or fan, every node flat out: seconds until it throttles, until one goes off")
    for policy in ("power-blind", "default"):
        for site, loop, device in LOOPS:
            told = [describe_trip(stopped(site, loop, policy, seed)) for seed in _SEEDS]
            print(f"{policy:<12} {site + '/' + loop:<16} {device}: " + "; ".join(told))
    print("scenario pump-trip, seed 0: nodes off, GPU-hours throttled, and lost to restarts and pauses")
    for policy in ("power-blind", "default"):
        report = run(setting_of(read_stage("pump-trip"), read_rules(policy), seed=0)).report
        lost = report.lost_gpu_hours
        print(
            f"  {policy:<12} {report.shutdowns:>4} {report.throttle_gpu_seconds / SECONDS_PER_HOUR:>8.2f}"
            f" {lost.restart:>8.1f} {lost.pause:>8.1f}"
        )


def describe_trip(whole: WholeRun) -> str:
    stops_at = BEGINS_AT + _STOPS_SECONDS
    paces, offs = (
        [incident.at - stops_at for incident, _ in whole.seen(kind) if incident.at >= stops_at]
        for kind in ("pace", "off")
    )
    lost = sum(len(incident.keys) for incident, _ in whole.seen("off"))
    answers = [
        record.decision.at - stops_at
        for record in whole.records
        if record.decision.at >= stops_at
        and any(action.kind in (ActionKind.PAUSE, ActionKind.CAP_POWER) for action in record.decision.actions)
    ]
    said = f"{paces[0]:.0f} s" if paces else "never"
    said += f", {offs[0]:.0f} s with {lost} attempts lost" if offs else ", none off"
    return said + (f", answered after {answers[0]:.0f} s" if answers else "")
