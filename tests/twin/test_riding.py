"""What cannot change what is decided is told later, and nothing is decided otherwise for it."""

from __future__ import annotations

import random
from collections.abc import Callable

from building import MONDAY, a_facility, a_job, a_policy, a_site
from wattline.control import step
from wattline.policy import decide
from wattline.spec import Policy
from wattline.state import (
    BEGINNINGS,
    AttemptEnded,
    Decision,
    JobRequest,
    RunSubmitted,
    Snapshot,
    State,
)
from wattline.twin.meters import Meters
from wattline.twin.run import RunJournal, Setting, drive, run
from wattline.twin.truth import Truth
from wattline.twin.workload import Arrival
from wattline.twin.world import TwinWorld

POLICY = a_policy()


def some_arrivals(seed: int) -> list[Arrival]:
    """Enough at once that most of them wait, then so few that none does."""
    chance = random.Random(seed)
    at, found = MONDAY, []
    for number in range(120):
        at += chance.expovariate(1 / 30.0 if number < 80 else 1 / 2000.0)
        found.append(
            Arrival(
                at=at,
                request=a_job(f"r{number}/train", gpus=chance.choice((1, 1, 2, 4, 8))),
                work_seconds=chance.uniform(100.0, 4000.0),
                utilisation=chance.uniform(0.3, 1.0),
            )
        )
    return found


def a_twin(seed: int, would_wait: Callable[[State], Callable[[JobRequest], bool]]) -> tuple[TwinWorld, State]:
    facility = a_facility(a_site(racks=2, nodes=1, gpus=8, telemetry="emulated"))
    state = State(facility)
    truth = Truth(state.plant, seed=0, exact=True, at=MONDAY)
    world = TwinWorld(
        state.plant,
        iter(some_arrivals(seed)),
        truth,
        Meters(truth, state.plant, 0, exact=True),
        begins_at=MONDAY,
        would_wait=would_wait(state),
    )
    return world, state


def starts(world: TwinWorld, state: State, policy: Policy) -> tuple[list[tuple[float, str, str]], int]:
    """Who began when and where, and how many turns it took."""
    found, turns = [], 0
    while True:
        decision = step(world, state, policy, RunJournal())
        turns += 1
        found += [
            (decision.at, act.job, str(act.place)) for act in decision.actions if act.kind in BEGINNINGS
        ]
        if world.is_over:
            return found, turns
        world.sleep_until(decision.revisit_at)


def test_jobs_that_are_known_to_wait_start_when_and_where_they_would_have() -> None:
    for seed in range(3):
        at_once, turns = starts(*a_twin(seed, lambda _: lambda _: False), POLICY)
        later, fewer = starts(*a_twin(seed, lambda state: lambda one: one.shape in state.stuck), POLICY)
        assert later == at_once
        assert len(at_once) == 120
        assert fewer < turns


def test_all_that_happened_is_in_the_journal_when_the_run_is_over() -> None:
    records = []
    world, state = a_twin(0, lambda state: lambda one: one.shape in state.stuck)
    setting = Setting(
        name="test", facility=state.plant.facility, policy=POLICY, arrivals=lambda: iter(()), begins_at=MONDAY
    )
    drive(world, state, setting, RunJournal(lambda data: records.append(data)))
    assert world.tally.completed == 120
    assert not world.has_news
    told = b"".join(records)
    assert told.count(f'"{AttemptEnded.__name__}"'.encode()) == 120
    assert told.count(f'"{RunSubmitted.__name__}"'.encode()) == 120
    assert not state.holding


def test_a_run_is_over_with_its_last_job_however_late_the_policy_would_look_again() -> None:
    world, state = a_twin(0, lambda _: lambda _: False)
    while True:
        step(world, state, POLICY, RunJournal())
        if world.is_over:
            break
        world.sleep_until(world.now() + 86400.0)
    longest_seconds = 4000.0
    assert world.now() <= world.tally.last_arrival_at + longest_seconds


def heard_late(policy: Policy) -> list[float]:
    """How long after it came each job was first decided about."""
    found: list[float] = []

    def watch(snapshot: Snapshot, policy: Policy) -> Decision:
        jobs = [snapshot.jobs[entry[2]] for _, queue in snapshot.queues for entry in queue]
        found.extend(snapshot.at - job.submitted_at for job in jobs if job.submitted_at > snapshot.decided_at)
        return decide(snapshot, policy)

    facility = a_facility(a_site(racks=2, nodes=1, gpus=8))
    setting = Setting(
        name="test",
        facility=facility,
        policy=policy,
        arrivals=lambda: iter(some_arrivals(0)),
        begins_at=MONDAY,
        decide=watch,
    )
    run(setting)
    return found


def test_where_others_may_make_way_who_comes_is_heard_at_once() -> None:
    assert max(heard_late(POLICY)) > 0.0
    assert max(heard_late(a_policy(sharing={"preempt": True}))) == 0.0
