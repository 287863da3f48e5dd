"""Which nodes go to sleep, and which wake for whoever waits or may come?"""

from __future__ import annotations

import math
from typing import Any

import pytest

from building import Hall, a_device, a_job, a_policy, a_site, a_world, assert_ledger_is_true, kinds
from wattline.facility import Sleep
from wattline.policy import decide, explain
from wattline.policy.scaling.warming import poisson_quantile, warm_nodes
from wattline.spec.scaling import Scaling
from wattline.state import (
    Acknowledged,
    Action,
    Came,
    Decision,
    JobState,
    Measured,
    NodeMode,
    NodeSlept,
    Snapshot,
    dump_state,
    load_state,
)

IDLE_WATTS = 200.0
SLEEP = Sleep(wake_seconds=90.0, asleep=0.1)
SLEEPY = {"sleep_after": "10min"}


def a_hall(*, scaling: dict[str, Any] | None = None, **site: Any) -> Hall:
    given: dict[str, Any] = {"nodes": 3, "gpus": 4, "other_watts": IDLE_WATTS, "sleep": SLEEP} | site
    return a_world(a_site(**given), policy=a_policy(scaling=SLEEPY if scaling is None else scaling))


def asked(decision: Decision) -> list[tuple[str, str]]:
    return [(action.kind.value, action.node) for action in decision.actions if action.node]


def all_asleep(hall: Hall) -> Hall:
    hall.obey(hall.decide())
    assert len(hall.state.resting.modes[NodeMode.ASLEEP]) == len(hall.state.plant.spots)
    return hall


def wakings(decision: Decision) -> list[Action]:
    return [action for action in decision.actions if action.kind == "wake"]


def test_without_scaling_in_the_policy_nobody_sleeps() -> None:
    hall = a_world(a_site(sleep=SLEEP))
    hall.wait(1e6)
    assert hall.decide().actions == ()


def test_where_a_site_cannot_send_nodes_to_sleep_nobody_is_asked_to() -> None:
    hall = a_hall(sleep=None)
    hall.wait(1e6)
    decision = hall.decide()
    assert decision.actions == ()
    assert decision.revisit_at is None


def test_nodes_that_nobody_ever_used_go_to_sleep() -> None:
    decision = a_hall().decide()
    assert asked(decision) == [("sleep", f"zurich/r1-n{number}") for number in (1, 2, 3)]


def test_a_node_goes_to_sleep_once_it_was_idle_for_long_enough() -> None:
    hall = a_hall(scaling={**SLEEPY, "most_warm": 0}, nodes=1)
    hall.run(a_job("r1/train", gpus=1))
    hall.wait(1000)
    hall.ended("r1/train")
    assert asked(hall.decide()) == []
    hall.wait(599)
    assert asked(hall.decide()) == []
    hall.wait(1)
    assert asked(hall.decide()) == [("sleep", "zurich/r1-n1")]


def test_while_somebody_waits_for_a_pool_none_of_it_goes_to_sleep() -> None:
    hall = a_hall(scaling={**SLEEPY, "most_warm": 0})
    hall.run(a_job("r1/train", gpus=8), a_job("r2/train", gpus=4))
    hall.submit(a_job("r3/train", gpus=8))
    hall.ended("r2/train")  # one node is free, and who waits needs two
    hall.decide()
    hall.wait(1000)
    assert asked(hall.decide()) == []


def test_the_next_look_comes_while_something_may_fall_idle() -> None:
    hall = a_hall(nodes=1)
    hall.run(a_job("r1/train", gpus=1))
    looks_at = decide(hall.snapshot(), hall.policy).revisit_at
    assert looks_at is not None
    assert hall.at < looks_at <= hall.at + 300


def test_a_node_that_sleeps_is_woken_before_a_job_starts_on_it() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=2))
    decision = hall.decide()
    assert kinds(decision) == [("wake", "")]
    assert len(wakings(decision)) == 1
    hall.wait(90)
    hall.obey(decision)
    started = hall.decide()
    assert [action.kind.value for action in started.actions if action.job] == ["start"]
    place = hall.job().place
    assert place is not None
    assert place.nodes[0][0] == wakings(decision)[0].node
    assert_ledger_is_true(hall.state)


def test_just_enough_nodes_wake_for_all_who_wait() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=2), a_job("r2/train", gpus=2), a_job("r3/train", gpus=1))
    assert len(wakings(hall.decide())) == 2
    hall.submit(a_job("r4/train", gpus=3))  # fits beside the third on what is waking
    assert wakings(hall.decide()) == []
    hall.submit(a_job("r5/train", gpus=1))
    assert len(wakings(hall.decide())) == 1


def test_a_gang_wakes_as_many_nodes_as_it_spreads_over() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=8))
    assert len(wakings(hall.decide())) == 2


def test_deciding_twice_asks_a_node_once() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=1))
    first = decide(hall.snapshot(), hall.policy)
    assert decide(hall.snapshot(), hall.policy).actions == first.actions
    hall.state.settle(first)
    hall.wait(1)
    assert hall.decide().actions == ()


def test_a_node_that_does_not_answer_is_asked_again_by_the_same_id() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=1))
    (wake,) = wakings(hall.decide())
    hall.wait(149)
    assert wake not in hall.decide().actions
    hall.wait(1)  # as long as waking takes, and what any answer is given
    assert wake in hall.decide().actions
    hall.fold(Acknowledged(at=hall.at, action=wake.id))
    hall.wait(149)
    assert wake not in hall.decide().actions


def test_an_answer_that_comes_twice_or_too_late_changes_nothing() -> None:
    hall = a_hall(nodes=1)
    (sleep,) = hall.decide().actions
    hall.obey_one(sleep)
    hall.submit(a_job("r1/train", gpus=1))
    hall.decide()
    before = hall.state.digest()
    hall.fold(NodeSlept(at=hall.at, node=sleep.node, action=sleep.id))
    assert hall.state.digest() == before


def test_a_node_that_fails_to_wake_is_left_alone_and_another_is_woken() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=1))
    (first,) = wakings(hall.decide())
    hall.failed(first)
    (second,) = wakings(hall.decide())
    assert second.node != first.node
    hall.failed(second)
    hall.failed(wakings(hall.decide())[0])
    assert wakings(hall.decide()) == []
    (failed,) = [verdict for verdict in hall.job().verdicts if verdict.rule == "scaling.failed"]
    assert failed.numbers == {"again_in_seconds": 600.0}
    hall.wait(600)
    assert len(wakings(hall.decide())) == 1


def test_a_node_that_takes_too_long_no_longer_counts_as_coming() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=1))
    (first,) = wakings(hall.decide())
    hall.wait(181)
    others = [action for action in wakings(hall.decide()) if action.id != first.id]
    assert len(others) == 1


def test_a_sleeping_node_leaves_most_of_its_idle_watts_to_others() -> None:
    hall = a_hall(nodes=1, rack_cap_watts=5000.0)
    rack = hall.state.plant.resource_number["zurich/r1"]
    assert hall.snapshot().promised(rack) == IDLE_WATTS
    all_asleep(hall)
    assert hall.snapshot().promised(rack) == 0.1 * IDLE_WATTS
    hall.submit(a_job("r1/train", gpus=1))
    hall.decide()
    assert hall.snapshot().promised(rack) == IDLE_WATTS  # from the moment it is asked to wake


@pytest.mark.parametrize(("spare_watts", "wakes"), [(0.0, True), (-1.0, False)])
def test_a_node_wakes_only_where_its_idle_watts_and_the_job_are_carried(
    spare_watts: float, wakes: bool
) -> None:
    cap_watts = IDLE_WATTS + 400.0 + 0.1 * IDLE_WATTS + spare_watts
    hall = all_asleep(a_hall(nodes=2, rack_cap_watts=cap_watts))
    hall.submit(a_job("r1/train", gpus=1))
    assert bool(wakings(hall.decide())) is wakes
    short = [verdict for verdict in hall.job().verdicts if verdict.rule == "scaling.margin"]
    assert bool(short) is not wakes
    if short:
        assert short[0].subject == "zurich/r1"
        assert short[0].numbers["short_by_watts"] == pytest.approx(1.0)
        assert short[0].change == "zurich/r1 frees 1 watts"


def test_a_margin_that_nobody_has_read_lately_is_none() -> None:
    hall = a_hall(nodes=2, telemetry="emulated")
    meters = (
        ("zurich/r1", "rack_watts"),
        ("zurich/feed-a", "supply_watts"),
        ("zurich/loop", "loop_heat_watts"),
    )

    def read() -> None:
        hall.fold(Measured(at=hall.at, readings=tuple((*meter, 100.0) for meter in meters)))

    read()
    all_asleep(hall)
    hall.wait(31)
    hall.submit(a_job("r1/train", gpus=1))
    assert wakings(hall.decide()) == []
    (short,) = [verdict for verdict in hall.job().verdicts if verdict.rule == "scaling.margin"]
    assert short.subject == "zurich/r1"
    assert "not read lately" in short.say
    read()
    assert len(wakings(hall.decide())) == 1


def test_a_job_that_may_not_run_wakes_nobody() -> None:
    policy = a_policy(scaling=SLEEPY, classes={"few": {"max_gpus": 0}})
    hall = a_world(a_site(nodes=1, sleep=SLEEP), policy=policy)
    all_asleep(hall)
    hall.submit(a_job("r1/train", gpus=1, scheduling_class="few"))
    assert wakings(hall.decide()) == []


def test_a_node_that_a_paused_job_means_to_return_to_stays_awake() -> None:
    hall = a_hall(scaling={**SLEEPY, "most_warm": 0}, nodes=1)
    hall.run(a_job("r1/train", gpus=1))
    hall.asked("r1/train", "pause")
    hall.obey(hall.decide())
    assert hall.job().state is JobState.PAUSED or hall.job().state is JobState.CANCELLED
    hall.wait(5000)
    assert asked(hall.decide()) == []


def test_a_pool_keeps_awake_what_its_policy_asks_for_at_least() -> None:
    hall = a_hall(scaling={**SLEEPY, "least_warm": 2})
    assert len(asked(hall.decide())) == 1


def test_a_pool_keeps_nodes_warm_for_whoever_may_come_and_lets_them_go_when_nobody_does() -> None:
    hall = a_hall(nodes=3)
    hall.run(a_job("r1/train", gpus=4))
    hall.wait(100)
    hall.ended("r1/train")
    hall.decide()
    hall.wait(600)
    hall.obey(hall.decide())
    assert len(hall.state.resting.modes[NodeMode.ASLEEP]) == 2  # one stays for the next
    hall.wait(2 * 86400)
    hall.obey(hall.decide())
    assert len(hall.state.resting.modes[NodeMode.ASLEEP]) == 3


def test_what_is_taken_of_a_warm_pool_is_woken_again() -> None:
    hall = a_hall(nodes=3, scaling={**SLEEPY, "least_warm": 1})
    hall.obey(hall.decide())
    hall.submit(a_job("r1/train", gpus=4))
    decision = hall.decide()
    assert sorted(action.kind.value for action in decision.actions) == ["start", "wake"]


def test_explain_says_for_which_node_a_job_waits_and_for_how_long() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=1))
    (wake,) = wakings(hall.decide())
    said = explain(hall.snapshot(), hall.policy, "r1/train")
    assert said.say == f"r1/train waits for node {wake.node} to wake: 1.5 min."
    assert said.blocked_by is not None
    assert said.blocked_by.rule == "scaling.waking"
    hall.wait(60)
    assert explain(hall.snapshot(), hall.policy, "r1/train").say.endswith("to wake: 30 s.")


def test_who_waited_for_a_node_to_wake_counts_as_a_cold_start() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=1))
    wake = hall.decide()
    hall.wait(90)
    hall.obey(wake)
    hall.obey(hall.decide())
    hall.wait(10)
    hall.run(a_job("r2/train", gpus=1))
    starts = hall.state.resting.starts
    assert (starts.starts, starts.cold, starts.cold_seconds) == (2, 1, 90.0)


def test_a_state_in_which_nodes_sleep_is_dumped_and_loaded_whole() -> None:
    hall = all_asleep(a_hall())
    hall.submit(a_job("r1/train", gpus=1))
    hall.decide()
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert dump_state(loaded) == dump_state(hall.state)
    assert loaded.digest() == hall.state.digest()
    assert_ledger_is_true(loaded)
    later = hall.at + 1000
    assert decide(Snapshot(loaded, later), hall.policy) == decide(Snapshot(hall.state, later), hall.policy)


def test_another_facility_keeps_asleep_what_sleeps() -> None:
    hall = all_asleep(a_hall(nodes=2))
    other = a_hall(nodes=3).state.plant.facility
    hall.state.rebase(other)
    assert len(hall.state.resting.modes[NodeMode.ASLEEP]) == 2
    assert_ledger_is_true(hall.state)
    loaded = load_state(other, dump_state(hall.state))
    assert loaded.digest() == hall.state.digest()


@pytest.mark.parametrize("mean", [0.1, 1.0, 7.5, 900.0])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_quantile_is_the_least_number_with_so_much_at_or_below(mean: float, share: float) -> None:
    number = poisson_quantile(mean, share)

    def below(most: int) -> float:
        return sum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(most + 1))

    assert below(number) >= share - 1e-9
    assert number == 0 or below(number - 1) < share


def test_more_nodes_stay_warm_the_more_come_the_longer_waking_takes_and_the_larger_they_are() -> None:
    def came(times: int, nodes: float = 1.0) -> Came:
        seen = Came()
        for number in range(times):
            seen = seen.plus(nodes, 1000.0 + 100.0 * number)
        return seen

    scaling = Scaling()
    at = 5000.0
    assert warm_nodes(None, at, 300.0, scaling) == 0
    few, many = warm_nodes(came(5), at, 300.0, scaling), warm_nodes(came(40), at, 300.0, scaling)
    assert 1 <= few < many
    assert warm_nodes(came(40), at, 1200.0, scaling) > many
    assert warm_nodes(came(40, 4.0), at, 300.0, scaling) > many
    assert warm_nodes(came(40), at + 86400.0, 300.0, scaling) == 0
    assert warm_nodes(came(40), at, 300.0, Scaling(most_warm=1)) == 1


def test_a_sweep_counts_as_one_that_comes_with_all_its_jobs() -> None:
    sweep = Came()
    for number in range(10):
        sweep = sweep.plus(0.5, 1000.0 + number)
    assert sweep.lots == pytest.approx(1.0, abs=0.01)
    assert sweep.nodes == pytest.approx(5.0, abs=0.01)
    assert warm_nodes(sweep, 1010.0, 300.0, Scaling()) >= 5


def test_a_device_that_idles_is_part_of_what_sleeping_saves() -> None:
    hall = a_hall(nodes=1, device=a_device(idle_watts=50.0))
    rack = hall.state.plant.resource_number["zurich/r1"]
    all_asleep(hall)
    assert hall.snapshot().promised(rack) == pytest.approx(0.1 * (IDLE_WATTS + 4 * 50.0))
