"""Check 7: what must hold between two runs, and at every moment of one, whatever the workload."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from bench.whole_runs import capped
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.truth.sites import a_plant, a_site, a_truth, run_until
from twin.validation.twins import (
    HOUR,
    a_setting,
    an_arrival,
    build,
    some_faults,
    some_work,
    two_sites,
    watch,
)
from wattline.control import Decide, step
from wattline.facility import CoolingKind, Facility
from wattline.policy import decide as decide_by_policy
from wattline.state import (
    ENDED,
    HOLDING,
    ActionKind,
    AttemptEnded,
    Ending,
    RunSubmitted,
)
from wattline.twin.baselines import BASELINES
from wattline.twin.run import run
from wattline.twin.truth import Truth
from wattline.units import SECONDS_PER_HOUR

POLICIES: dict[str, Decide] = {"default": decide_by_policy, **BASELINES}
every_policy = pytest.mark.parametrize("policy", POLICIES)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.3, 1.0), st.floats(0.0, 0.5))
def test_loosening_a_cap_never_raises_throttle_seconds(seed: int, cap: float, looser: float) -> None:
    """In a cool hall of one kind, where nothing else can hold a job back; each runs until it is done."""
    facility = Facility(name="test", sites=(a_site(racks=2, nodes=2, supply_celsius=15.0),))
    work = some_work(Random(seed), jobs=30)
    tight, loose = (
        run(a_setting(facility, work, seed=seed, decide=capped(fraction))).report
        for fraction in (cap, min(1.0, cap + looser))
    )
    assert tight.jobs.completed == loose.jobs.completed > 20
    assert loose.throttle_gpu_seconds <= tight.throttle_gpu_seconds * (1 + 1e-9)
    assert loose.lost_gpu_hours.throttle <= tight.lost_gpu_hours.throttle * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(list(CoolingKind)),
    st.integers(0, 2**31),
    st.lists(
        st.tuples(st.floats(1.0, 300.0), st.integers(0, 5), st.floats(0.0, 1.1), st.floats(0.3, 1.0)),
        min_size=1,
        max_size=30,
    ),
)
def test_a_kelvin_more_at_the_inlet_never_lowers_a_temperature(
    kind: CoolingKind, seed: int, moves: list[tuple[float, int, float, float]]
) -> None:
    """At equal loads, below the throttle limit: above it firmware answers, and a warmer die may draw less."""
    supplies = (10.0, 11.0)
    plants = [a_plant(a_site(kind, racks=3, nodes=2, supply_celsius=celsius)) for celsius in supplies]
    truths = [a_truth(plant, exact=False, seed=seed) for plant in plants]
    at, running = 0.0, set[int]()
    for later, node, utilisation, cap in moves:
        at += later
        for truth in truths:
            run_until(truth, at)
            drive_node(truth, node, utilisation, cap, at, running=node in running)
        running ^= {node}
        cool, warm = truths
        assert warm.tally.heat_throttle_gpu_seconds == cool.tally.heat_throttle_gpu_seconds == 0.0
        for moment in (at, at + 5.0, at + 500.0):
            for number in range(6):
                assert warm.node_celsius(number, moment) >= cool.node_celsius(number, moment)


def drive_node(truth: Truth, node: int, utilisation: float, cap: float, at: float, *, running: bool) -> None:
    if running:
        truth.unload(f"job-{node}", at)
    else:
        truth.load(f"job-{node}", [(node, 8)], utilisation, cap, at)


@every_policy
@pytest.mark.parametrize("seed", range(2))
def test_a_job_that_can_never_fit_is_refused_when_it_comes(policy: str, seed: int) -> None:
    chance = Random(seed)
    impossible = [
        an_arrival("gpus", 1000.0, 33, 60.0),
        an_arrival("model", 2000.0, 1, 60.0, gpu_models=("V100",)),
        an_arrival("region", 3000.0, 1, 60.0, residency=("moon",)),
        an_arrival("cpus", 4000.0, 1, 60.0, cpus=65.0),
    ]
    twin = watch(
        a_setting(
            two_sites(),
            some_work(chance, jobs=60) + impossible,
            faults=some_faults(chance),
            seed=seed,
            decide=POLICIES[policy],
            until_seconds=3 * HOUR,
        )
    )
    names = {arrival.request.job for arrival in impossible}
    refused_with_arrival = set()
    for record in twin.records:
        came = {job.job for event in record.events if isinstance(event, RunSubmitted) for job in event.jobs}
        refused = {action.job for action in record.decision.actions if action.kind is ActionKind.REFUSE}
        assert refused <= came
        refused_with_arrival |= refused & names
    assert refused_with_arrival == names


@every_policy
@pytest.mark.parametrize("seed", range(3))
def test_queued_running_and_ended_make_up_the_submitted_after_every_step(policy: str, seed: int) -> None:
    """By the world's own count, and by what the policy has been told."""
    chance = Random(100 + seed)
    setting = a_setting(
        two_sites(), some_work(chance), faults=some_faults(chance), seed=seed, decide=POLICIES[policy]
    )
    twin = build(setting, forget=False)
    world, state, tally = twin.world, twin.state, twin.world.tally
    told_all = 0
    while world.now() < setting.begins_at + 6 * HOUR:
        decision = step(world, state, setting.policy, twin.journal, setting.decide)
        assert tally.waiting + tally.running + tally.ended == tally.submitted == len(state.jobs)
        if not decision.actions:  # then both know the same
            told_all += 1
            states = Counter(job.state in HOLDING for job in state.jobs.values())
            ended = sum(job.state in ENDED for job in state.jobs.values())
            assert (states[True], ended) == (tally.running, tally.ended)
        if world.is_over and decision.revisit_at is None:
            break
        world.sleep_until(decision.revisit_at)
    assert told_all > 20
    assert tally.submitted == 90
    assert tally.completed > 5


@every_policy
@pytest.mark.parametrize("seed", range(2))
def test_held_gpu_hours_are_useful_or_lost_and_a_job_that_is_done_has_done_all_its_work(
    policy: str, seed: int
) -> None:
    """Jobs on one node each, so that none is slowed by distance; caps, pauses, trips and heat included."""
    chance = Random(200 + seed)
    work = some_work(chance, gangs=False)
    setting = a_setting(
        two_sites(),
        work,
        faults=some_faults(chance),
        seed=seed,
        decide=POLICIES[policy],
        until_seconds=12 * HOUR,
    )
    twin = watch(setting)
    tally, ended = twin.world.tally, []
    for record in twin.records:
        ended += [event for event in record.events if isinstance(event, AttemptEnded)]
    held = sum(event.usage.gpu_hours for event in ended)
    for attempt in twin.world._attempts.values():
        held += attempt.gpus * (twin.world.now() - attempt.started_at) / SECONDS_PER_HOUR
    losses = tally.losses
    lost = (losses.throttle + losses.restart + losses.preempt + losses.pause) / SECONDS_PER_HOUR
    assert held == pytest.approx(tally.useful_gpu_seconds / SECONDS_PER_HOUR + lost, rel=1e-9)
    done = {event.job for event in ended if event.ending is Ending.SUCCEEDED}
    assert len(done) == tally.completed > 20
    kept = sum(arrival.request.gpus * arrival.work_seconds for arrival in work if arrival.request.job in done)
    begun = sum(
        progress.arrival.request.gpus * progress.done_seconds for progress in twin.world._progress.values()
    )
    assert tally.useful_gpu_seconds == pytest.approx(kept + begun, rel=1e-9)
