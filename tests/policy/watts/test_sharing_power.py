"""Sharing power: jobs start on a cap, caps move with what there is, and no bound is ever broken."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import MONDAY, Hall, a_job, a_policy, a_site, a_world, assert_ledger_is_true, kinds
from wattline.policy import decide
from wattline.policy.explaining.explanation import explain
from wattline.policy.watts.sharing_power import share_power
from wattline.spec.ladder import Rung, RungKind
from wattline.state import Ending, JobRequest, JobState

FEED = "zurich/feed-a"
# Sixteen GPUs of 400 W under a feed that carries twelve of them.
FEED_WATTS = 4800.0


def a_hall(by: str = "caps", *, feed_watts: float = FEED_WATTS, telemetry: str = "nvml", **more: Any) -> Hall:
    sharing = {"by": by, **more}
    site = a_site(feeds_watts=(feed_watts,), telemetry=telemetry)
    return a_world(site, policy=a_policy(power_sharing=sharing))


def flexible(name: str, **more: Any) -> JobRequest:
    return a_job(f"{name}/train", **{"gpus": 8, "checkpoints": True, "ladder": ()} | more)


def rigid(name: str) -> JobRequest:
    return a_job(f"{name}/train", gpus=8, checkpoints=False, ladder=(), scheduling_class="rigid")


def a_hold(watts: float, *, after: float = 0.0, lasts: str = "3h") -> dict[str, object]:
    at = datetime.fromtimestamp(MONDAY + after, UTC)
    return {"name": "grid", "site": "zurich", "at": at.isoformat(), "lasts": lasts, "watts": f"{watts:g}W"}


def settle(hall: Hall, most: int = 20) -> None:
    """Decide and obey until nothing more is asked."""
    for _ in range(most):
        decision = hall.decide()
        check(hall)
        hall.obey(decision)
        if not decision.actions:
            return
    raise AssertionError("caps wander")


def check(hall: Hall) -> None:
    assert_ledger_is_true(hall.state)
    ledger, feed = hall.state.ledger, hall.state.plant.resource_number[FEED]
    assert ledger.promised[feed] <= ledger.caps[feed]


def claimed_watts(hall: Hall) -> int:
    return hall.state.ledger.promised[hall.state.plant.resource_number[FEED]]


def test_a_job_that_does_not_fit_waits_while_power_is_not_shared() -> None:
    hall = a_hall("off")
    hall.submit(flexible("r1"), flexible("r2"))
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_off_decides_byte_for_byte_what_no_word_of_sharing_does() -> None:
    halls = [a_hall("off"), a_world(a_site(feeds_watts=(FEED_WATTS,)))]
    told = []
    for hall in halls:
        hall.submit(flexible("r1"), flexible("r2"))
        first = hall.decide()
        hall.obey(first)
        hall.wait(60)
        hall.ended("r1/train")
        told.append(msgspec.json.encode([first, hall.decide()]))
    assert told[0] == told[1]


def test_a_job_that_does_not_fit_without_a_cap_starts_on_one() -> None:
    hall = a_hall()
    hall.submit(flexible("r1"), flexible("r2"))
    decision = hall.decide()
    assert kinds(decision) == [("start", "r1/train"), ("start", "r2/train")]
    assert decision.actions[0].fraction == 1.0
    assert 0.4 <= decision.actions[1].fraction <= 0.5
    check(hall)


def test_two_alike_come_to_share_alike_and_use_what_there_is() -> None:
    hall = a_hall()
    hall.run(flexible("r1"), flexible("r2"))
    settle(hall)
    fractions = [hall.job(f"{name}/train").power_fraction for name in ("r1", "r2")]
    assert abs(fractions[0] - fractions[1]) <= 0.041
    assert 0.95 * FEED_WATTS <= claimed_watts(hall) <= FEED_WATTS


def test_who_is_left_alone_gets_its_watts_back() -> None:
    hall = a_hall()
    hall.run(flexible("r1"), flexible("r2"))
    settle(hall)
    hall.ended("r1/train")
    settle(hall)
    assert hall.job("r2/train").power_fraction == 1.0


def test_caps_are_lowered_to_make_room_for_one_that_bears_none() -> None:
    hall = a_hall()
    hall.run(flexible("r1"))
    hall.submit(rigid("r2"))
    settle(hall)
    assert hall.job("r2/train").state is JobState.RUNNING
    assert hall.job("r2/train").power_fraction == 1.0
    assert hall.job("r1/train").power_fraction <= 0.5


def test_rigid_jobs_are_never_capped_and_wait_for_each_other() -> None:
    hall = a_hall()
    hall.submit(rigid("r1"), rigid("r2"))
    settle(hall)
    assert [hall.job(f"{name}/train").state for name in ("r1", "r2")] == [JobState.RUNNING, JobState.WAITING]
    assert hall.job("r1/train").power_fraction == 1.0


def test_who_was_asked_for_something_already_is_not_asked_for_more() -> None:
    hall = a_hall(feed_watts=1e5, holds=[a_hold(4000, after=60)])
    hall.run(flexible("r1"), flexible("r2"))
    hall.wait(60)
    shared = share_power(hall.snapshot(), hall.policy, {"r1/train"})
    assert {action.job for action in shared.actions} == {"r2/train"}


def test_a_hold_lowers_caps_at_once_and_is_over_when_it_says() -> None:
    hall = a_hall(feed_watts=1e5, holds=[a_hold(4000, after=60)])
    hall.run(flexible("r1"), flexible("r2"))
    decision = hall.decide()
    assert decision.revisit_at == MONDAY + 60
    assert not decision.actions
    hall.wait(60)
    settle(hall)
    assert 3800 <= claimed_watts(hall) <= 4000
    hall.wait(3 * 3600)
    settle(hall)
    assert claimed_watts(hall) == 6400


def test_nobody_starts_into_a_hold_that_has_no_room_for_it() -> None:
    hall = a_hall(feed_watts=1e5, holds=[a_hold(2000)])
    hall.run(flexible("r1", gpus=1), flexible("r2", gpus=1))
    hall.submit(flexible("r3"))
    settle(hall)
    assert hall.job("r3/train").state is JobState.RUNNING  # 1280 W at the least cap
    assert claimed_watts(hall) <= 2000
    hall.submit(flexible("r4", gpus=4))
    settle(hall)
    assert hall.job("r4/train").state is JobState.WAITING


def test_who_waits_for_a_hold_starts_when_it_is_over_though_nobody_came_or_went() -> None:
    hall = a_hall(feed_watts=1e5, holds=[a_hold(200)])
    hall.submit(rigid("r1"), rigid("r2"))
    settle(hall)
    hall.wait(3600)
    for name in ("r1", "r2"):
        told = explain(hall.snapshot(), hall.policy, f"{name}/train")
        assert told.say.startswith(
            f"{name}/train waits for the end of hold grid: zurich may draw 200 W for 2 h"
        )
        assert told.blocked_by is not None
    hall.wait(2 * 3600)
    settle(hall)
    assert all(hall.job(f"{name}/train").state is JobState.RUNNING for name in ("r1", "r2"))


def test_a_hold_that_caps_do_not_reach_pauses_some_who_come_back_after_it() -> None:
    hall = a_hall(feed_watts=1e5, holds=[a_hold(2000, after=60)])
    hall.run(flexible("r1"), flexible("r2"))
    hall.wait(60)
    settle(hall)
    states = sorted(hall.job(f"{name}/train").state for name in ("r1", "r2"))
    assert states == [JobState.RUNNING, JobState.WAITING]
    assert claimed_watts(hall) <= 2000
    hall.wait(3 * 3600)
    settle(hall)
    assert all(hall.job(f"{name}/train").state is JobState.RUNNING for name in ("r1", "r2"))


def test_what_rigid_jobs_keep_from_being_reached_is_said_at_once_with_what_can_be() -> None:
    hall = a_hall(feed_watts=1e5, holds=[a_hold(3000, after=60)])
    hall.run(flexible("r1"), rigid("r2"))
    hall.wait(60)
    decision = hall.decide()
    (told,) = [verdict for verdict in decision.verdicts if verdict.rule == "power.hold"]
    assert told.job == "r2/train"
    assert told.numbers["reachable_watts"] == pytest.approx(3200, abs=5)
    assert told.numbers["short_by_watts"] == pytest.approx(200, abs=5)
    assert ("pause", "r1/train") in kinds(decision)
    hall.obey(decision)
    assert not [verdict for verdict in hall.decide().verdicts if verdict.rule == "power.hold"]


def test_a_hold_that_is_over_changes_nothing() -> None:
    hall = a_hall(feed_watts=1e5, holds=[a_hold(1000, after=-7200, lasts="1h")])
    hall.run(flexible("r1"), flexible("r2"))
    decision = hall.decide()
    assert not decision.actions
    assert decision.revisit_at is None


def test_a_hold_that_began_in_the_past_is_kept_from_the_first_decision_on() -> None:
    hall = a_hall(feed_watts=1e5, holds=[a_hold(4000, after=-7200)])
    hall.submit(flexible("r1"), flexible("r2"))
    settle(hall)
    assert claimed_watts(hall) <= 4000


def read_all(hall: Hall, *watts: float) -> None:
    """What meters say of the GPUs of each node, and of what carries them."""
    for number, each in enumerate(watts, 1):
        hall.read(f"zurich/r1-n{number}/gpu0", "gpu_watts", each)
    for subject, quantity in ((FEED, "supply_watts"), ("zurich/r1", "rack_watts")):
        hall.read(subject, quantity, 8 * sum(watts))
    hall.read("zurich/loop", "loop_heat_watts", 8 * sum(watts))


def test_by_meters_two_that_draw_less_than_they_may_both_run_without_a_cap() -> None:
    hall = a_hall("meters", telemetry="emulated")
    read_all(hall, 0.0, 0.0)
    hall.submit(flexible("r1"))
    hall.obey(hall.decide())
    hall.wait(10)
    read_all(hall, 280.0, 0.0)
    hall.submit(flexible("r2"))
    hall.obey(hall.decide())
    for _ in range(8):
        hall.wait(10)
        read_all(hall, 280.0, min(280.0, 400 * hall.job("r2/train").power_fraction))
        hall.obey(hall.decide())
    assert [hall.job(f"{name}/train").power_fraction for name in ("r1", "r2")] == [1.0, 1.0]


def run_sixteen(hall: Hall, carried_watts: float) -> list[float]:
    """Jobs of one GPU each: of every node the hungriest is read at 350 W, and so much of all together."""
    read_all(hall, 0.0, 0.0)
    names = [f"r{number}" for number in range(16)]
    for name in names:
        hall.submit(flexible(name, gpus=1))
    for _ in range(12):
        hall.obey(hall.decide())
        hall.wait(70)
        for node in (1, 2):
            hall.read(f"zurich/r1-n{node}/gpu0", "gpu_watts", 350.0)
        for subject, quantity in (
            (FEED, "supply_watts"),
            ("zurich/r1", "rack_watts"),
            ("zurich/loop", "loop_heat_watts"),
        ):
            hall.read(subject, quantity, carried_watts)
    return [hall.job(f"{name}/train").power_fraction for name in names]


def test_by_meters_jobs_beside_a_hungry_one_count_for_what_the_meter_above_them_reads() -> None:
    # Each as hungry as the hungriest would be 5.6 kW, which the feed does not carry.
    assert run_sixteen(a_hall("meters", telemetry="emulated"), 2500.0) == [1.0] * 16


def test_by_meters_jobs_are_capped_where_the_meter_above_them_reads_as_much_as_theirs() -> None:
    assert min(run_sixteen(a_hall("meters", telemetry="emulated"), 4900.0)) < 1.0


@pytest.mark.parametrize(("loop_watts", "capped"), [(6800.0, False), (4800.0, True)])
def test_by_meters_watts_are_shared_under_a_loop_as_under_a_feed(loop_watts: float, capped: bool) -> None:
    site = a_site(loop_watts=loop_watts, telemetry="emulated")
    hall = a_world(site, policy=a_policy(power_sharing={"by": "meters"}))
    read_all(hall, 0.0, 0.0)
    names = ("r1", "r2")
    for name in names:
        hall.submit(flexible(name))
    for _ in range(8):
        hall.obey(hall.decide())
        hall.wait(70)
        read_all(hall, *[400.0 * hall.job(f"{name}/train").power_fraction for name in names])
    assert all(hall.job(f"{name}/train").state is JobState.RUNNING for name in names)
    fractions = [hall.job(f"{name}/train").power_fraction for name in names]
    assert (min(fractions) < 1.0) is capped
    assert 8 * 400 * sum(fractions) <= loop_watts


def test_a_cap_that_pressure_asked_for_is_left_to_sharing_once_it_has_gone() -> None:
    hall = a_hall("meters", telemetry="emulated", feed_watts=3100.0)
    read_all(hall, 0.0, 0.0)
    hall.submit(flexible("r1", ladder=(Rung(kind=RungKind.CAP_POWER, amount=0.8),)))
    hall.obey(hall.decide())
    hall.wait(10)
    read_all(hall, 395.0, 0.0)  # 60 W more than the feed carries
    hall.obey(hall.decide())
    assert hall.job("r1/train").rung == 0
    for _ in range(8):  # within the margin that coming back would ask for
        hall.wait(30)
        read_all(hall, 360.0, 0.0)
        hall.obey(hall.decide())
    assert hall.job("r1/train").rung == -1


def test_by_meters_a_meter_that_fell_silent_before_a_job_began_is_not_believed() -> None:
    hall = a_hall("meters", telemetry="emulated")
    read_all(hall, 0.0, 0.0)
    hall.run(flexible("r1"))
    hall.wait(10)  # the reading of an idle node is young enough to be believed otherwise
    hall.submit(flexible("r2"))
    hall.decide()
    assert hall.job("r2/train").power_fraction < 0.6


def test_what_is_remembered_between_decisions_changes_none_of_them() -> None:
    hall = a_hall("meters", telemetry="emulated")
    read_all(hall, 0.0, 0.0)
    hall.run(flexible("r1"), flexible("r2"))
    for watts in (380.0, 300.0, 360.0, 200.0):
        hall.wait(10)
        read_all(hall, *[min(watts, 400 * hall.job(f"r{number}/train").power_fraction) for number in (1, 2)])
        warm = decide(hall.snapshot(), hall.policy)
        hall.state.derived.clear()
        assert msgspec.json.encode(decide(hall.snapshot(), hall.policy)) == msgspec.json.encode(warm)
        hall.obey(hall.decide())


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["submit", "end", "wait", "lose"]),
            st.integers(1, 8),
            st.booleans(),
            st.integers(0, 7),
        ),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from([2000.0, FEED_WATTS]),
)
def test_whatever_comes_and_goes_no_bound_is_broken(
    history: list[tuple[str, int, bool, int]], feed_watts: float
) -> None:
    hall = a_hall(feed_watts=feed_watts)
    for number, (what, gpus, bears_caps, which) in enumerate(history):
        running = sorted(job.id for job in hall.state.jobs.values() if job.state is JobState.RUNNING)
        if what == "submit":
            hall.submit(flexible(f"r{number}", gpus=gpus, checkpoints=bears_caps))
        elif what == "wait":
            hall.wait(10.0 * gpus)
        elif running:
            ending = Ending.SUCCEEDED if what == "end" else Ending.LOST
            hall.ended(running[which % len(running)], ending)
        settle(hall, most=60)
        assert claimed_watts(hall) <= feed_watts


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["submit", "end", "wait", "read", "lose"]),
            st.integers(1, 8),
            st.booleans(),
            st.integers(0, 7),
        ),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(["caps", "meters"]),
)
def test_what_is_kept_between_decisions_decides_as_what_is_found_anew(
    history: list[tuple[str, int, bool, int]], by: str
) -> None:
    hall = a_hall(by, telemetry="emulated", feed_watts=3000.0)
    read_all(hall, 0.0, 0.0)
    for number, (what, gpus, bears_caps, which) in enumerate(history):
        running = sorted(job.id for job in hall.state.jobs.values() if job.state is JobState.RUNNING)
        if what == "submit":
            hall.submit(flexible(f"r{number}", gpus=gpus, checkpoints=bears_caps))
        elif what == "wait":
            hall.wait(10.0 * gpus)
        elif what == "read":
            read_all(hall, 40.0 * gpus, 40.0 * which)
        elif running:
            ending = Ending.SUCCEEDED if what == "end" else Ending.LOST
            hall.ended(running[which % len(running)], ending)
        kept = decide(hall.snapshot(), hall.policy)
        hall.state.derived.clear()
        assert msgspec.json.encode(kept) == msgspec.json.encode(decide(hall.snapshot(), hall.policy))
        hall.obey(hall.decide())
