"""However often a job is made narrower or wider, the work it does is the work it asked for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from building import MONDAY, a_facility, a_job, a_policy, a_site
from wattline.spec.policy import Policy
from wattline.state import (
    Action,
    ActionKind,
    AttemptEnded,
    Ending,
    JobRequest,
    Place,
    Plant,
    elastic_request,
)
from wattline.twin.meters import Meters
from wattline.twin.report import Report
from wattline.twin.run import Setting, run
from wattline.twin.truth import Truth
from wattline.twin.workload import Arrival
from wattline.twin.world import Overheads, TwinWorld

JOB, HOUR = "r1/train", 3600.0
SITE = a_site(nodes=1, gpus=16, telemetry="emulated")


def elastic(name: str = JOB, *, alpha: float = 0.9, gpus: int = 8, **changes: object) -> JobRequest:
    return elastic_request(a_job(name, gpus=gpus, checkpoints=True, **changes), gpus // 2, 2 * gpus, 1, alpha)


def a_world(alpha: float, work_seconds: float) -> TwinWorld:
    plant = Plant(a_facility(SITE))
    truth = Truth(plant, seed=0, exact=True, at=MONDAY)
    arrival = Arrival(
        at=MONDAY + 1.0, request=elastic(alpha=alpha), work_seconds=work_seconds, utilisation=0.5
    )
    meters = Meters(truth, plant, 0, exact=True)
    world = TwinWorld(plant, iter([arrival]), truth, meters, begins_at=MONDAY, overheads=Overheads())
    until_it_left(world, MONDAY + 2.0)
    return world


def begin(world: TwinWorld, attempt: int, gpus: int) -> None:
    kind = ActionKind.START if attempt == 1 else ActionKind.RESUME
    place = Place("zurich", (("zurich/r1-n1", gpus),))
    world.apply(Action(id=f"{attempt}", kind=kind, job=JOB, attempt=attempt, place=place))


def until_it_left(world: TwinWorld, at: float) -> Ending | None:
    """Goes on to a time, or until its attempt has ended."""
    while True:
        for event in world.events():
            if isinstance(event, AttemptEnded):
                return event.ending
        if world.now() >= at:
            return None
        world.sleep_until(at)


widths = st.lists(
    st.tuples(st.integers(4, 16), st.floats(100.0, 5000.0), st.booleans()), min_size=1, max_size=8
)


@settings(max_examples=60, deadline=None)
@given(widths, st.floats(0.3, 1.0))
def test_the_work_done_is_the_work_asked_for_whatever_the_widths(
    steps: list[tuple[int, float, bool]], alpha: float
) -> None:
    world = a_world(alpha, 4 * HOUR)
    done = 0.0
    for attempt, (gpus, seconds, is_lost) in enumerate(steps, 1):
        begin(world, attempt, gpus)
        if until_it_left(world, world.now() + seconds) is Ending.SUCCEEDED:
            break
        if is_lost:
            world.apply(Action(id=f"s{attempt}", kind=ActionKind.STOP, job=JOB, attempt=attempt, lost=True))
        else:
            world.apply(Action(id=f"p{attempt}", kind=ActionKind.PAUSE, job=JOB, attempt=attempt))
            worked = seconds - (60.0 if attempt > 1 else 0.0)
            done += max(0.0, worked) * (gpus / 8) ** alpha
        until_it_left(world, math.inf)
        if not any(lost for _, _, lost in steps):
            assert world.tally.useful_gpu_seconds == pytest.approx(8 * done)
    else:
        begin(world, len(steps) + 1, 8)
        assert until_it_left(world, math.inf) is Ending.SUCCEEDED
    assert world.tally.useful_gpu_seconds == pytest.approx(8 * 4 * HOUR)
    assert world.tally.busy_gpus == 0


def test_twice_the_gpus_are_as_much_faster_as_the_job_says() -> None:
    for gpus, speed in ((8, 1.0), (16, 2**0.5), (4, 0.5**0.5)):
        world = a_world(0.5, 2 * HOUR)
        begin(world, 1, gpus)
        assert until_it_left(world, math.inf) is Ending.SUCCEEDED
        assert world.now() - MONDAY - 2.0 == pytest.approx(2 * HOUR / speed)


def replay(policy: Policy, *arrivals: Arrival) -> Report:
    setting = Setting(
        name="test",
        facility=a_facility(SITE),
        policy=policy,
        arrivals=lambda: iter(arrivals),
        begins_at=MONDAY,
        exact=True,
    )
    return run(setting).report


def test_a_burst_is_through_sooner_and_does_the_same_work() -> None:
    arrivals = [
        Arrival(
            at=MONDAY + 1200.0 * number,
            request=elastic(f"r{number}/train", gpus=12 if number % 2 else 8, max_duration_seconds=9 * HOUR),
            work_seconds=3 * HOUR,
            utilisation=0.6,
        )
        for number in range(6)
    ]
    rigid = replay(a_policy(), *arrivals)
    resized = replay(a_policy(resizing={}), *arrivals)
    assert rigid.jobs.completed == resized.jobs.completed == 6
    assert resized.useful_gpu_hours == pytest.approx(rigid.useful_gpu_hours)
    assert resized.completion_minutes.mean is not None
    assert rigid.completion_minutes.mean is not None
    assert resized.completion_minutes.mean < rigid.completion_minutes.mean
    assert replay(a_policy(resizing={}), *arrivals).digest == resized.digest


def test_one_that_is_alone_grows_to_its_most_and_back_when_another_comes() -> None:
    first = Arrival(
        at=MONDAY, request=elastic(max_duration_seconds=20 * HOUR), work_seconds=8 * HOUR, utilisation=0.6
    )
    late = Arrival(at=MONDAY + HOUR, request=a_job("r2/train", gpus=8), work_seconds=HOUR, utilisation=0.6)
    report = replay(a_policy(resizing={}), first, late)
    assert report.jobs.completed == 2
    assert report.preemptions == 3  # wider, as asked, wider again
