"""A forecast plays the queue through with the live decisions: where run times are known, it is exact."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest

from building import MONDAY, Hall, a_job, a_ladder, a_policy, a_site, a_world
from wattline.control import step
from wattline.facility import Site
from wattline.spec.pipeline import Locality, Priority
from wattline.state import (
    BEGINNINGS,
    Decision,
    Event,
    Expected,
    Forecasted,
    Job,
    Measured,
    Progressed,
    RunSubmitted,
    dump_state,
)
from wattline.twin.continuing import ContinuedWorld
from wattline.twin.forecast import TwinForecaster
from wattline.twin.lately import Lately
from wattline.twin.meters import Meters
from wattline.twin.remaining import Lasted
from wattline.twin.truth import Truth
from wattline.twin.workload import Arrival
from wattline.twin.world import TwinWorld

HOUR = 3600.0
PATIENT = 1e9  # a budget that no machine is too slow for


def forecaster(**changes: object) -> TwinForecaster:
    return TwinForecaster(**({"budget_seconds": PATIENT} | changes))  # type: ignore[arg-type]


def look(hall: Hall, **changes: object) -> Forecasted:
    found = forecaster(**changes).forecast(hall.state, hall.policy, hall.at)
    assert found is not None
    return found


def starts(found: Forecasted) -> dict[str, Expected]:
    return {expected.job: expected for expected in found.starts}


def a_full_hall(**changes: object) -> Hall:
    """One node, and one job on all of it that may still run for an hour."""
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("r0/train", **({"gpus": 8, "max_duration_seconds": HOUR} | changes)))
    return hall


class _Loose:
    def append(self, events: Sequence[Event], digest: Callable[[], str], decision: Decision) -> None: ...


def a_busy_hall(
    work_of: Callable[[int], float], *sites: Site, jobs: int, seed: int
) -> tuple[Hall, TwinWorld]:
    """Jobs come every twenty seconds; ten minutes after the last, many wait."""
    chance = random.Random(seed)
    hall = a_world(*sites)
    arrivals = [
        Arrival(
            at=MONDAY + 20.0 * number,
            request=a_job(
                f"r{number}/train",
                gpus=chance.choice((1, 2, 4, 8)),
                locality=Locality.NODE,  # what is spread is slower, and by how much is not known here
                priority=chance.choice(tuple(Priority)),
            ),
            work_seconds=work_of(number),
            utilisation=1.0,
        )
        for number in range(jobs)
    ]
    plant = hall.state.plant
    truth = Truth(plant, seed=0, exact=True, at=MONDAY)
    meters = Meters(truth, plant, 0, exact=True)
    world = TwinWorld(plant, iter(arrivals), truth, meters, begins_at=MONDAY, forget=False)
    hall.at = arrivals[-1].at + 600.0
    go_on(world, hall, hall.at)
    return hall, world


def go_on(world: TwinWorld, hall: Hall, until: float) -> dict[str, float]:
    """The loop up to a time; when each job began meanwhile."""
    began: dict[str, float] = {}
    while world.now() < until:
        decision = step(world, hall.state, hall.policy, _Loose())
        began |= {action.job: decision.at for action in decision.actions if action.kind in BEGINNINGS}
        world.sleep_until(until if decision.revisit_at is None else min(decision.revisit_at, until))
    hall.state.fold(world.events())
    return began


def test_where_run_times_are_known_every_start_is_forecast_to_the_second() -> None:
    """What the twin then does is what it was forecast to do, at two sites and with four priorities."""
    sites = (
        a_site("zurich", racks=2, telemetry="emulated"),
        a_site("oslo", nodes=1, usd_per_kwh=0.3, telemetry="emulated"),
    )
    work = [random.Random(number).uniform(300.0, 2 * HOUR) for number in range(60)]
    hall, world = a_busy_hall(lambda number: work[number], *sites, jobs=60, seed=7)
    assert len(hall.state.holding) > 5

    def known(job: Job, at: float, _lot: float, _others: Sequence[Lasted], _shares: Sequence[float]) -> float:
        done = at - job.started_at if job.started_at is not None else 0.0
        return work[int(job.request.run[1:])] - done

    found = look(hall, samples=5, seconds_left=known)
    actual = go_on(world, hall, hall.at + 200 * HOUR)
    assert set(starts(found)) == set(actual)
    assert len(actual) > 20
    for job, expected in starts(found).items():
        assert expected.p50_at == pytest.approx(actual[job], abs=0.01)
        assert expected.p90_at == expected.p50_at


def test_where_run_times_are_not_known_half_start_by_p50_and_most_by_p90() -> None:
    """Of one queue all are early or all are late together, so many queues are asked."""
    by_p50, by_p90, jobs = 0, 0, 0
    for seed in range(7):
        chance = random.Random(seed)
        hall, world = a_busy_hall(
            lambda _: max(1.0, chance.lognormvariate(math.log(1042.0), 2.04)),  # noqa: B023
            a_site(nodes=3, telemetry="emulated"),
            jobs=30,
            seed=seed,
        )
        found = starts(look(hall, horizon_seconds=1e4 * HOUR))
        actual = go_on(world, hall, hall.at + 1e4 * HOUR)
        for job, expected in found.items():
            assert expected.p50_at is not None
            assert expected.p90_at is not None
            jobs += 1
            by_p50 += actual[job] <= expected.p50_at + 1.0
            by_p90 += actual[job] <= expected.p90_at + 1.0
    assert jobs > 80
    assert 0.3 <= by_p50 / jobs <= 0.7
    assert by_p90 / jobs >= 0.75


def test_where_nobody_waits_there_is_nothing_to_forecast() -> None:
    hall = a_full_hall()
    assert forecaster().forecast(hall.state, hall.policy, hall.at) is None


def test_what_is_not_known_makes_a_spread_within_what_is_possible() -> None:
    hall = a_full_hall()
    hall.submit(a_job(gpus=8))
    (expected,) = look(hall).starts
    assert expected.p50_at is not None
    assert expected.p90_at is not None
    assert hall.at < expected.p50_at < expected.p90_at <= hall.at + HOUR


def test_the_same_queue_has_the_same_forecast_and_stays_as_it_was() -> None:
    hall = a_full_hall()
    hall.submit(a_job(gpus=8), a_job("r2/train", gpus=4))
    before = dump_state(hall.state)
    assert look(hall) == look(hall)
    assert dump_state(hall.state) == before


def test_progress_tells_when_a_running_job_will_leave() -> None:
    hall = a_full_hall(max_duration_seconds=100 * HOUR)
    hall.wait(HOUR)
    hall.fold(Progressed(at=hall.at, job="r0/train", attempt=1, step=100, total=300))
    hall.submit(a_job(gpus=8))
    (expected,) = look(hall).starts
    assert expected.p50_at == pytest.approx(hall.at + 2 * HOUR, rel=0, abs=0.2 * HOUR)


def test_a_blocked_phase_starts_after_the_one_before_it() -> None:
    hall = a_full_hall()
    hall.submit(a_job("r1/train", gpus=8), a_job("r1/evaluate", gpus=8, after=("r1/train",)))
    found = starts(look(hall))
    assert found["r1/train"].p50_at < found["r1/evaluate"].p50_at  # type: ignore[operator]


def test_who_was_asked_to_stay_is_not_forecast_and_takes_no_room() -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("r0/train", gpus=8), a_job("r1/train", gpus=8))
    hall.asked("r0/train", "pause")
    (expected,) = look(hall).starts
    assert expected.job == "r1/train"
    assert expected.p50_at == pytest.approx(hall.at)


def test_a_job_that_pressure_paused_comes_back_when_it_has_gone_for_good() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(thresholds={"clear_for": "300s"}))
    hall.run(a_job(gpus=8, checkpoints=True, ladder=a_ladder({"pause": "1h"})))
    hall.read("zurich/r1", "cap_watts", 100.0)
    hall.obey(hall.decide())
    hall.wait(1)
    hall.read("zurich/r1", "cap_watts", 1e6)
    (expected,) = look(hall).starts
    assert expected.p50_at == pytest.approx(hall.at + 300, abs=1.0)


def test_what_no_future_starts_is_told_as_beyond_the_horizon() -> None:
    rules = [{"name": "never", "when": "job.gpus > 0", "say": "no", "mode": "block"}]
    hall = a_world(policy=a_policy(rules=rules))
    hall.submit(a_job())
    found = look(hall, horizon_seconds=HOUR)
    assert found.starts == (Expected("r1/train", None, None),)
    assert found.horizon_seconds == HOUR


def test_a_node_that_is_off_and_a_cap_that_was_lowered_stay_so() -> None:
    hall = a_world(a_site(nodes=1, telemetry="emulated"))
    hall.submit(a_job(gpus=8))
    assert starts(look(hall))["r1/train"].p50_at == pytest.approx(hall.at)
    hall.read("zurich/r1", "cap_watts", 100.0)
    assert starts(look(hall, horizon_seconds=HOUR))["r1/train"].p50_at is None
    hall.read("zurich/r1", "cap_watts", 1e6)
    hall.wait(1)
    hall.read("zurich/r1-n1", "node_up", 0.0)
    assert starts(look(hall, horizon_seconds=HOUR))["r1/train"].p50_at is None


def test_a_loop_that_lacks_flow_stays_so() -> None:
    hall = a_world(a_site(nodes=1, loop_watts=4000.0, telemetry="emulated"))
    hall.submit(a_job(gpus=8))
    assert starts(look(hall))["r1/train"].p50_at == pytest.approx(hall.at)
    hall.read("zurich/loop", "flow_fraction", 0.1)
    assert starts(look(hall, horizon_seconds=HOUR))["r1/train"].p50_at is None


@pytest.mark.parametrize(
    ("telemetry", "quantities"),
    [("none", set()), ("nvml", {"gpu_celsius", "gpu_watts"})],
)
def test_only_meters_that_the_facility_has_are_read(telemetry: str, quantities: set[str]) -> None:
    hall = a_world(a_site(telemetry=telemetry))
    world = ContinuedWorld(hall.state, lambda _: pytest.fail("nobody is there"), begins_at=hall.at)
    (measured,) = world.events()
    assert isinstance(measured, Measured)
    assert {quantity for _, quantity, _ in measured.readings} == quantities


@pytest.mark.parametrize("want", ["pause", "cancel"])
def test_what_is_on_its_way_out_has_left_within_a_minute(want: str) -> None:
    hall = a_full_hall(checkpoints=True)
    hall.asked("r0/train", want)
    hall.decide()  # and nobody has answered yet
    hall.submit(a_job(gpus=8))
    (expected,) = look(hall).starts
    assert expected.p90_at is not None
    assert expected.p90_at <= hall.at + 60


def test_an_attempt_that_is_stopped_for_want_of_an_answer_goes_on_afterwards() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(thresholds={"acknowledge_within": "10s"}))
    hall.submit(a_job(gpus=8, checkpoints=True))
    for _ in range(4):
        hall.decide()
        hall.wait(11)
    assert hall.job().state == "stopping"
    hall.submit(a_job("r2/train", gpus=8))
    assert starts(look(hall))["r2/train"].p50_at is not None


def test_a_budget_that_ends_early_tells_less_and_never_more_than_was_seen() -> None:
    hall = a_full_hall()
    hall.submit(a_job(gpus=8), a_job("r2/train", gpus=8))
    assert look(hall, samples=4).starts[0].p90_at is None, "too few to tell"
    hall.submit(a_job("r3/train", gpus=0))
    found = look(hall, budget_seconds=0.0)
    assert found.samples == 1
    assert [expected.job for expected in found.starts] == ["r3/train"], "it starts at once, the others later"


def test_a_run_is_forecast_before_it_is_submitted() -> None:
    hall = a_full_hall()
    hall.submit(a_job("r1/train", gpus=8, max_duration_seconds=HOUR))
    before = hall.state.digest()
    asked = RunSubmitted(at=hall.at, run="r2", pipeline="p", jobs=(a_job("r2/train", gpus=8),))
    found = forecaster().forecast_run(hall.state, hall.policy, asked)
    assert found is not None
    (expected,) = found.starts
    assert expected.job == "r2/train"
    assert expected.p50_at > starts(look(hall))["r1/train"].p50_at  # type: ignore[operator]
    assert hall.state.digest() == before


def test_runs_that_are_over_teach_how_long_a_phase_takes() -> None:
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("r0/train", gpus=8))
    hall.wait(900)
    hall.ended("r0/train")
    hall.run(a_job("r1/train", gpus=8))
    hall.wait(300)
    hall.submit(a_job("r2/train", gpus=8))
    (expected,) = look(hall).starts
    assert expected.p50_at == pytest.approx(hall.at + 600, abs=91.0)
    assert expected.p90_at == pytest.approx(hall.at + 600, abs=91.0)


def test_what_came_lately_comes_again_and_the_more_urgent_of_it_goes_first() -> None:
    """An urgent job for the whole node every hour of a day: nobody else gets on it for long."""
    hall = a_full_hall()
    hall.submit(a_job("r1/train", gpus=8, priority=Priority.LOW))
    lately = Lately()
    calm = starts(look(hall, lately=lately))["r1/train"].p50_at
    for hour in reversed(range(24)):
        urgent = a_job(
            f"u{hour}/train",
            gpus=8,
            priority=Priority.HIGH,
            max_duration_seconds=4 * HOUR,
            locality=Locality.NODE,
        )
        lately.come(hall.at - hour * HOUR - 3590.0, urgent)
    busy = starts(look(hall, lately=lately, horizon_seconds=24 * HOUR))["r1/train"].p50_at
    assert calm is not None
    assert busy is None or busy > calm


def test_what_can_be_played_in_time_grows_with_the_budget() -> None:
    hall = a_full_hall()
    hall.submit(*[a_job(f"r{number}/train", gpus=8) for number in range(1, 40)])
    assert forecaster().fits(hall.state)
    assert not forecaster(budget_seconds=0.05).fits(hall.state)


@pytest.mark.parametrize(("read_watts", "starts_now"), [(3000.0, True), (6500.0, False)])
def test_no_room_is_found_that_the_meters_did_not_show(read_watts: float, starts_now: bool) -> None:
    """By its claim a second job fits; by what the rack draws it fits only where that is little."""
    hall = a_world(a_site(nodes=2, rack_cap_watts=7000.0, telemetry="emulated"))
    hall.read("zurich/r1", "rack_watts", 500.0)
    hall.run(a_job("r0/train", gpus=8, peak_watts=3000.0, max_duration_seconds=HOUR))
    hall.submit(a_job("r1/train", gpus=8, peak_watts=3000.0, max_duration_seconds=HOUR))
    hall.wait(1.0)
    hall.read("zurich/r1", "rack_watts", read_watts)
    (expected,) = look(hall).starts
    assert expected.p50_at is not None
    assert (expected.p50_at - hall.at < 1.0) is starts_now
