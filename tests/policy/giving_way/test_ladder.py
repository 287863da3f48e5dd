"""Under pressure a job gives way a rung at a time, and comes back when pressure has gone for good."""

from __future__ import annotations

from collections import Counter

import pytest

from building import (
    Hall,
    a_job,
    a_ladder,
    a_link,
    a_policy,
    a_site,
    a_world,
    assert_ledger_is_true,
    kinds,
)
from wattline.spec import Policy, Rung
from wattline.state import ActionKind, Asked, Decision, JobState

CAP_WATTS = 10_000.0
LADDER = a_ladder(
    {"cap_power": "70%"},
    {"shrink_batch": "50%", "when": "power_headroom < 15%"},
    {"pause": "2h", "when": "power_headroom < 5%"},
    {"migrate": "any"},
)
POLICY = a_policy(thresholds={"settle": "30s", "clear_for": "120s", "clear_margin": "10%"})


def a_hall(
    *jobs: str, ladder: tuple[Rung, ...] | None = LADDER, policy: Policy = POLICY, **asks: object
) -> Hall:
    """Two metered sites; the jobs run in zurich, whose rack may draw 10 kW."""
    hall = a_world(
        a_site("zurich", nodes=8, gpus=2, rack_cap_watts=CAP_WATTS, telemetry="emulated"),
        a_site("oslo", nodes=2, gpus=2, usd_per_kwh=9.0),
        links=[a_link(("zurich", "oslo"))],
        policy=policy,
    )
    draw(hall, 0.0)
    request = {"gpus": 2, "checkpoints": True, "ladder": ladder, "max_duration_seconds": 1e6} | asks
    hall.run(*(a_job(name, **request) for name in jobs or ("r1/train",)))
    assert all(hall.job(name).place.site == "zurich" for name in hall.state.jobs)  # type: ignore[union-attr]
    return hall


def draw(hall: Hall, share: float) -> None:
    """All meters of zurich, with its rack at this share of its cap."""
    hall.read("zurich/r1", "rack_watts", share * CAP_WATTS)
    hall.read("zurich/feed-a", "supply_watts", share * CAP_WATTS)
    hall.read("zurich/loop", "loop_heat_watts", share * CAP_WATTS)


def turn(hall: Hall, share: float, seconds: float = 30.0) -> Decision:
    """Time passes, meters are read, a decision is made and obeyed."""
    hall.wait(seconds)
    draw(hall, share)
    decision = hall.decide()
    hall.obey(decision)
    assert_ledger_is_true(hall.state)
    return decision


def test_a_job_gives_way_in_the_order_its_owner_wrote() -> None:
    hall = a_hall()
    assert [kinds(turn(hall, 1.2)) for _ in range(3)] == [
        [("cap_power", "r1/train")],
        [("shrink_batch", "r1/train")],
        [("pause", "r1/train")],
    ]
    assert hall.job().power_fraction == pytest.approx(0.7)
    assert hall.job().in_flight_fraction == 0.5
    assert hall.job().state is JobState.PAUSED
    hall.wait(7200)
    assert kinds(turn(hall, 1.2)) == [("migrate", "r1/train")]
    assert hall.job().place.site == "oslo"  # type: ignore[union-attr]
    assert (hall.job().attempt, hall.job().rung, hall.job().power_fraction) == (2, -1, 1.0)


def test_a_rung_whose_condition_does_not_hold_is_skipped() -> None:
    conditional = a_ladder(
        {"cap_power": "70%"}, {"shrink_batch": "50%", "when": "cooling_headroom < 5%"}, {"pause": "1h"}
    )
    hall = a_hall(ladder=conditional)
    assert [kinds(turn(hall, 1.2)) for _ in range(2)] == [
        [("cap_power", "r1/train")],
        [("pause", "r1/train")],
    ]


def test_a_rung_is_given_time_to_work_before_the_next() -> None:
    hall = a_hall()
    turn(hall, 1.2)
    hall.wait(29)
    draw(hall, 1.2)
    decision = hall.decide()
    assert kinds(decision) == []
    assert decision.revisit_at == hall.at + 1
    assert kinds(turn(hall, 1.2, seconds=1)) == [("shrink_batch", "r1/train")]


def test_nothing_is_asked_of_a_job_that_has_not_answered_yet() -> None:
    hall = a_hall()
    hall.wait(1)
    draw(hall, 1.2)
    assert kinds(hall.decide()) == [("cap_power", "r1/train")]
    hall.wait(31)
    draw(hall, 1.2)
    assert kinds(hall.decide()) == []


def test_never_all_jobs_at_once_and_those_that_lose_least_first() -> None:
    policy = a_policy(thresholds={"jobs_per_response": 2})
    hall = a_hall("r1/train", "r2/train", "r3/train", policy=policy)
    hall.submit(a_job("r4/train", gpus=1, ladder=a_ladder({"cap_power": "90%"}), checkpoints=True))
    hall.obey(hall.decide())
    decision = turn(hall, 1.2)
    assert kinds(decision) == [("cap_power", "r4/train"), ("cap_power", "r1/train")]
    assert decision.revisit_at == hall.at + 30
    prices = [action.lost_gpu_seconds for action in decision.actions]
    assert prices == sorted(prices)


def test_a_job_without_checkpoints_is_never_paused_or_moved() -> None:
    hall = a_hall(checkpoints=False)
    assert [kinds(turn(hall, 1.2)) for _ in range(5)] == [
        [("cap_power", "r1/train")],
        [("shrink_batch", "r1/train")],
        [],
        [],
        [],
    ]
    assert hall.job().verdicts[0].say == "no rung of its ladder is left"
    told = [verdict.say for decision in hall.decisions for verdict in decision.verdicts]
    assert told.count("no rung of its ladder is left") == 1


def test_a_rung_is_taken_back_when_pressure_has_been_gone_long_enough() -> None:
    hall = a_hall()
    turn(hall, 1.2)
    assert [kinds(turn(hall, 0.5)) for _ in range(4)] == [[], [], [], []]
    assert kinds(turn(hall, 0.5)) == [("cap_power", "r1/train")]
    assert (hall.job().power_fraction, hall.job().rung) == (1.0, -1)


def test_rungs_are_taken_back_one_by_one() -> None:
    hall = a_hall()
    turn(hall, 1.2)
    turn(hall, 1.2)
    back = [action for _ in range(12) for action in turn(hall, 0.5).actions]
    assert [(action.kind, action.fraction) for action in back] == [
        (ActionKind.SHRINK_BATCH, 1.0),
        (ActionKind.CAP_POWER, 1.0),
    ]


def test_pressure_that_comes_back_starts_the_wait_anew() -> None:
    hall = a_hall()
    turn(hall, 1.2)
    turn(hall, 0.5)
    turn(hall, 0.5)
    turn(hall, 0.95)  # below the cap, but not with ten per cent to spare
    assert [kinds(turn(hall, 0.5)) for _ in range(5)][:4] == [[], [], [], []]


def test_a_cap_is_not_lifted_where_lifting_it_would_press_again() -> None:
    """The rack has room for its claim at 70 %, and not for all of it."""
    hall = a_hall(*(f"r{n}/train" for n in range(8)))
    hall.read("zurich/r1", "cap_watts", 5000.0)
    for _ in range(3):
        turn(hall, 0.64)
    capped = [job.id for job in hall.state.jobs.values() if job.power_fraction < 1]
    assert len(capped) == 8
    for _ in range(40):
        turn(hall, 0.4)
    rack = hall.state.plant.resource_number["zurich/r1"]
    assert hall.state.ledger.claimed[rack] <= 5000


def test_pressure_that_swings_around_the_limit_does_not_make_caps_flap() -> None:
    """An hour of meters that are above the cap and below it by turns."""
    hall = a_hall("r1/train", "r2/train")
    asked: Counter[tuple[str, str]] = Counter()
    for minute in range(240):
        asked.update(kinds(turn(hall, 1.01 if minute % 2 else 0.99, seconds=15)))
    assert asked["cap_power", "r1/train"] <= 2
    assert sum(asked.values()) <= 8


def test_a_cap_that_lowers_the_draw_below_the_limit_is_not_lifted_back_into_it() -> None:
    """A hall that answers: what is drawn follows the caps. It must come to rest, not swing."""
    hall = a_hall(*(f"r{n}/train" for n in range(8)))
    hall.read("zurich/r1", "cap_watts", 6000.0)
    caps = 0
    for _ in range(200):
        watts = sum(
            800.0 * job.power_fraction for job in hall.state.jobs.values() if job.state is JobState.RUNNING
        )
        decision = turn(hall, watts / CAP_WATTS)
        caps += sum(action.kind is ActionKind.CAP_POWER for action in decision.actions)
    assert 0 < caps <= 16


def test_a_paused_job_resumes_in_place_when_pressure_clears_first() -> None:
    hall = a_hall(ladder=a_ladder({"pause": "2h"}, {"migrate": "any"}))
    assert kinds(turn(hall, 1.2)) == [("pause", "r1/train")]
    assert [kinds(turn(hall, 0.2)) for _ in range(4)] == [[], [], [], []]
    assert kinds(turn(hall, 0.2)) == [("resume", "r1/train")]
    assert hall.job().place.site == "zurich"  # type: ignore[union-attr]


def test_a_pause_that_has_lasted_long_enough_becomes_a_move() -> None:
    hall = a_hall(ladder=a_ladder({"pause": "90s"}, {"migrate": "oslo"}))
    turn(hall, 1.2)
    assert kinds(turn(hall, 1.2)) == []
    assert kinds(turn(hall, 1.2)) == []
    decision = turn(hall, 1.2)
    assert kinds(decision) == [("migrate", "r1/train")]
    assert decision.actions[0].lost_gpu_seconds > 0


def test_a_job_with_nowhere_to_go_stays_paused_and_says_why() -> None:
    hall = a_hall(ladder=a_ladder({"pause": "60s"}, {"migrate": "any"}))
    turn(hall, 1.2)
    for node in ("oslo/r1-n1", "oslo/r1-n2"):
        hall.read(f"{node}/gpu0", "gpu_celsius", 99.0)
    for _ in range(4):
        hall.wait(29)
        for node in ("oslo/r1-n1", "oslo/r1-n2"):
            hall.read(f"{node}/gpu0", "gpu_celsius", 99.0)
        assert kinds(turn(hall, 1.2, seconds=1)) == []
    assert hall.job().state is JobState.PAUSED
    assert any(verdict.rule == "power.rack" and not verdict.allows for verdict in hall.job().verdicts)


def test_a_move_needs_a_place_before_the_job_is_paused_for_it() -> None:
    hall = a_hall(ladder=a_ladder({"migrate": "bergen"}, {"cap_power": "50%"}))
    assert kinds(turn(hall, 1.2)) == [("cap_power", "r1/train")]


def test_a_job_moves_with_a_checkpoint_first() -> None:
    hall = a_hall(ladder=a_ladder({"migrate": "any"}))
    assert kinds(turn(hall, 1.2)) == [("pause", "r1/train")]
    assert kinds(turn(hall, 1.2)) == [("migrate", "r1/train")]


def test_the_last_rung_may_be_to_stop() -> None:
    hall = a_hall(ladder=a_ladder({"cap_power": "50%"}, {"stop": True}))
    turn(hall, 1.2)
    assert kinds(turn(hall, 1.2)) == [("stop", "r1/train")]
    assert hall.job().state is JobState.FAILED
    assert "power.rack" in hall.decisions[-1].actions[0].because


def test_a_pause_may_end_in_a_stop_unless_the_pressure_has_gone() -> None:
    ladder = a_ladder({"pause": "60s"}, {"stop": True})
    pressed, relieved = a_hall(ladder=ladder), a_hall(ladder=ladder)
    for hall, share in ((pressed, 1.2), (relieved, 0.2)):
        turn(hall, 1.2)
        turn(hall, share)
        turn(hall, share)
    assert pressed.job().state is JobState.FAILED
    assert relieved.job().state is JobState.PAUSED


def test_after_a_pause_a_rung_whose_condition_does_not_hold_is_skipped_too() -> None:
    hall = a_hall(ladder=a_ladder({"pause": "30s"}, {"stop": True, "when": "cooling_headroom < 5%"}))
    turn(hall, 1.2)
    for _ in range(4):
        assert kinds(turn(hall, 1.2)) == []


def test_a_pause_that_failed_is_not_repeated_when_the_pressure_has_gone() -> None:
    hall = a_hall(ladder=a_ladder({"cap_power": "70%"}, {"pause": "1h"}))
    turn(hall, 1.2)
    hall.wait(30)
    draw(hall, 1.2)
    hall.failed(hall.decide().actions[0])
    assert hall.job().state is JobState.RUNNING
    back = [action for _ in range(12) for action in turn(hall, 0.3).actions]
    assert {action.kind for action in back} == {ActionKind.CAP_POWER}
    assert (hall.job().power_fraction, hall.job().rung) == (1.0, -1)


def test_a_shorter_ladder_than_the_job_stands_on_leads_back_all_the_same() -> None:
    policy = a_policy(under_pressure=[{"shrink_batch": "50%"}, {"cap_power": "50%"}])
    hall = a_hall(policy=policy, ladder=None)
    turn(hall, 1.2)
    turn(hall, 1.2)
    assert hall.job().rung == 1
    hall.policy = a_policy()
    for _ in range(10):
        turn(hall, 0.2)
    assert (hall.job().power_fraction, hall.job().rung) == (1.0, -1)


def test_heat_that_is_coming_presses_before_it_is_there() -> None:
    hall = a_hall(ladder=a_ladder({"cap_power": "50%", "when": "minutes_to_throttle < 20"}))
    hall.wait(1)
    draw(hall, 0.5)
    hall.read("zurich/loop", "supply_celsius", 50.0)
    decision = hall.decide()
    assert kinds(decision) == [("cap_power", "r1/train")]
    verdict = decision.verdicts[0]
    assert verdict.rule == "heat.throttle"
    assert 0 < verdict.numbers["throttles_after_minutes"] < 20


def test_a_link_that_has_become_too_small_presses_in_bits_per_second() -> None:
    hall = a_hall(checkpoint_bits_per_second=8e8, replicate_to=("oslo",), ladder=a_ladder({"pause": "1h"}))
    hall.read("zurich-oslo:checkpoint", "cap_bits_per_second", 5e8)
    decision = turn(hall, 0.5)
    assert kinds(decision) == [("pause", "r1/train")]
    assert decision.verdicts[0].numbers["short_by_bits_per_second"] == 3e8


@pytest.mark.parametrize("saved_last", ["r1/train", "r2/train"])
def test_stopping_costs_what_was_not_saved(saved_last: str) -> None:
    hall = a_hall(
        "r1/train",
        "r2/train",
        ladder=a_ladder({"stop": True}),
        policy=a_policy(thresholds={"jobs_per_response": 1}),
    )
    hall.wait(1000)
    hall.saved("r1/train")
    hall.wait(100)
    hall.saved("r2/train")
    hall.wait(10)
    if saved_last == "r1/train":
        hall.saved("r1/train")
    assert kinds(turn(hall, 1.2, seconds=1)) == [("stop", saved_last)]


def test_a_batch_is_not_restored_where_that_would_press_again() -> None:
    """A hall that answers: the rack may draw 2.4 kW, the job draws 3.2, and 1.6 with half its batch."""
    hall = a_hall(gpus=8, ladder=a_ladder({"shrink_batch": "50%"}))
    hall.read("zurich/r1", "cap_watts", 2400.0)

    def lived(turns: int) -> list[float]:
        actions = [
            action
            for _ in range(turns)
            for action in turn(hall, 3200.0 * hall.job().in_flight_fraction / CAP_WATTS).actions
        ]
        return [action.fraction for action in actions]

    assert lived(40) == [0.5]
    hall.read("zurich/r1", "cap_watts", CAP_WATTS)
    assert lived(10) == [1.0]


def test_a_batch_is_restored_where_no_meter_tells_and_all_that_was_promised_fits() -> None:
    hall = a_world(a_site(nodes=1, rack_cap_watts=3600.0), policy=POLICY)
    hall.run(a_job(gpus=8, ladder=a_ladder({"shrink_batch": "50%"})))
    hall.read("zurich/r1", "cap_watts", 3000.0)
    hall.obey(hall.decide())
    assert hall.job().in_flight_fraction == 0.5
    hall.wait(1)
    hall.read("zurich/r1", "cap_watts", 3600.0)
    for _ in range(3):
        hall.wait(120)
        hall.obey(hall.decide())
    assert hall.job().in_flight_fraction == 1.0


def test_a_job_that_has_just_taken_load_back_is_no_relief_on_its_way() -> None:
    hall = a_hall(ladder=a_ladder({"cap_power": "90%"}, {"cap_power": "80%"}))
    turn(hall, 1.01)
    turn(hall, 1.01)
    for _ in range(5):
        turn(hall, 0.5)
    assert hall.job().rung == 0
    assert kinds(turn(hall, 1.005, seconds=1)) == [("cap_power", "r1/train")]


def test_taking_load_back_does_not_use_up_the_number_of_jobs_that_give_way_at_once() -> None:
    hall = a_world(
        a_site(racks=2, nodes=1, gpus=2, rack_cap_watts=CAP_WATTS, telemetry="emulated"),
        policy=a_policy(thresholds={"jobs_per_response": 1}),
    )

    def turn_at(first: float, second: float) -> list[tuple[str, str]]:
        hall.wait(30)
        draw(hall, first)
        hall.read("zurich/r2", "rack_watts", second * CAP_WATTS)
        decision = hall.decide()
        hall.obey(decision)
        return kinds(decision)

    turn_at(0.0, 0.0)
    hall.run(*(a_job(f"r{n}/train", gpus=2, ladder=a_ladder({"cap_power": "50%"})) for n in (1, 2)))
    assert turn_at(1.2, 0.5) == [("cap_power", "r1/train")]
    assert [turn_at(0.5, 0.5) for _ in range(4)] == [[], [], [], []]
    assert sorted(turn_at(0.5, 1.2)) == [("cap_power", "r1/train"), ("cap_power", "r2/train")]


def test_a_job_that_moves_takes_its_share_of_the_quota_along() -> None:
    """It was promised 555 of 600 GPU-hours; it does not need as many again elsewhere."""
    policy = a_policy(teams={"nlp": {"quota": {"gpu_hours": 600}}})
    hall = a_hall(ladder=a_ladder({"migrate": "any"}), policy=policy)
    assert kinds(turn(hall, 1.2)) == [("pause", "r1/train")]


# Heat that leaves no time for one rung after the other.

SLOW_LADDER = a_ladder({"cap_power": "90%"}, {"cap_power": "40%"}, {"shrink_batch": "50%"}, {"pause": "1h"})


def a_hot_hall(*jobs: str, ladder: tuple[Rung, ...] = SLOW_LADDER, **asks: object) -> Hall:
    hall = a_hall(*jobs, ladder=ladder, policy=a_policy(thresholds={"jobs_per_response": 1}), **asks)
    hall.wait(1)
    draw(hall, 0.5)
    return hall


def heat(hall: Hall, *, die_celsius: float, flow: float | None = None, supply: float | None = None) -> None:
    for node in hall.state.plant.nodes_of_site["zurich"]:
        hall.read(f"{hall.state.plant.spots[node].node.name}/gpu0", "gpu_celsius", die_celsius)
        hall.read(f"{hall.state.plant.spots[node].node.name}/gpu0", "gpu_watts", 400.0)
    if flow is not None:
        hall.read("zurich/loop", "flow_fraction", flow)
        hall.read("zurich/loop", "coolant_celsius", 60.0)
    if supply is not None:
        hall.read("zurich/loop", "supply_celsius", supply)
        hall.read("zurich/loop", "coolant_celsius", supply)


def test_where_dies_throttle_within_seconds_all_jobs_leave_at_once() -> None:
    """Nothing flows: that even 160 W are too much would show after half a minute, which is too late."""
    hall = a_hot_hall("r1/train", "r2/train", "r3/train")
    heat(hall, die_celsius=80.0, flow=0.0)
    decision = hall.decide()
    assert kinds(decision) == [("pause", f"r{n}/train") for n in (1, 2, 3)]
    assert {action.rung for action in decision.actions} == {3}


def test_of_the_rungs_that_are_left_the_mildest_that_is_enough_is_taken_at_once() -> None:
    """At 58 °C supply 400 W end at 98 °C and 360 W at 94, but 160 W at 74: 85 is the limit."""
    hall = a_hot_hall("r1/train", "r2/train")
    heat(hall, die_celsius=84.0, supply=58.0)
    decision = hall.decide()
    assert [(action.kind, action.fraction) for action in decision.actions] == [
        (ActionKind.CAP_POWER, 0.4),
        (ActionKind.CAP_POWER, 0.4),
    ]


def test_a_rung_that_is_enough_is_given_its_time_even_while_dies_are_still_hot() -> None:
    hall = a_hot_hall()
    heat(hall, die_celsius=84.0, supply=58.0)
    hall.obey(hall.decide())
    hall.wait(5)
    draw(hall, 0.5)
    heat(hall, die_celsius=86.0, supply=58.0)
    assert kinds(hall.decide()) == []


def test_a_rung_that_turns_out_too_little_is_not_waited_for() -> None:
    hall = a_hot_hall()
    heat(hall, die_celsius=84.0, supply=58.0)
    hall.obey(hall.decide())
    hall.wait(5)
    draw(hall, 0.5)
    heat(hall, die_celsius=84.0, flow=0.0)
    assert kinds(hall.decide()) == [("pause", "r1/train")]


def test_heat_that_leaves_minutes_is_answered_a_rung_and_a_job_at_a_time() -> None:
    hall = a_hot_hall("r1/train", "r2/train")
    heat(hall, die_celsius=40.0, supply=58.0)
    assert kinds(hall.decide()) == [("cap_power", "r1/train")]


def test_a_job_that_cannot_leave_takes_the_last_rung_it_can() -> None:
    hall = a_hot_hall(checkpoints=False)
    heat(hall, die_celsius=80.0, flow=0.0)
    assert kinds(hall.decide()) == [("shrink_batch", "r1/train")]


# What a rung frees is what is drawn, where it is drawn.


def a_paired_hall(*jobs: str, **feeds: float) -> Hall:
    """Racks on A and B; each GPU draws 400 W, half of it from either side."""
    hall = a_world(
        a_site(nodes=8, gpus=2, feeds_watts=(1e5, 1e5), redundant=True, telemetry="emulated"),
        policy=a_policy(thresholds={"jobs_per_response": 100}),
    )
    read_feeds(hall, 0.0)
    ladder = a_ladder({"cap_power": "50%"})
    hall.run(*(a_job(name, gpus=2, ladder=ladder, checkpoints=True) for name in jobs))
    for feed, cap_watts in feeds.items():
        hall.read(f"zurich/feed-{feed}", "cap_watts", cap_watts)
    hall.wait(1)
    return hall


def read_feeds(hall: Hall, watts: float, feeds: str = "ab") -> None:
    hall.read("zurich/r1", "rack_watts", watts)
    hall.read("zurich/loop", "loop_heat_watts", watts)
    for feed in feeds:
        hall.read(f"zurich/feed-{feed}", "supply_watts", watts / len(feeds))


def test_a_side_of_a_pair_is_relieved_by_half_of_what_its_jobs_free() -> None:
    """Feed A is 300 W over; a job that halves its 800 W takes 200 W off each side, so two must."""
    names = [f"r{n}/train" for n in range(1, 9)]
    hall = a_paired_hall(*names, a=2900.0)
    read_feeds(hall, 6400.0)
    assert kinds(hall.decide()) == [("cap_power", name) for name in names[:2]]


def test_the_side_that_is_left_is_relieved_by_all_of_it() -> None:
    names = [f"r{n}/train" for n in range(1, 9)]
    hall = a_paired_hall(*names, a=0.0, b=6100.0)
    read_feeds(hall, 6400.0, feeds="b")
    assert kinds(hall.decide()) == [("cap_power", names[0])]


def test_jobs_that_draw_little_free_little() -> None:
    """A cap of 200 W frees nothing of a GPU that draws 150; the job that draws 400 is the one that helps."""
    hall = a_paired_hall("r1/train", "r2/train", a=600.0)
    places = {name: hall.job(name).place.nodes[0][0] for name in ("r1/train", "r2/train")}  # type: ignore[union-attr]
    hall.read(f"{places['r1/train']}/gpu0", "gpu_watts", 150.0)
    hall.read(f"{places['r2/train']}/gpu0", "gpu_watts", 400.0)
    read_feeds(hall, 1220.0)
    assert ("cap_power", "r2/train") in kinds(hall.decide())


def test_a_side_whose_meter_is_silent_counts_half_of_what_was_promised() -> None:
    """3200 W were promised; A may carry 2000 and is not read any more, while B is there."""
    names = [f"r{n}/train" for n in range(1, 5)]
    hall = a_paired_hall(*names, a=2000.0, b=2000.0)
    read_feeds(hall, 3200.0)
    assert kinds(hall.decide()) == []
    hall.wait(60)
    hall.read("zurich/r1", "rack_watts", 3200.0)
    hall.read("zurich/loop", "loop_heat_watts", 3200.0)
    hall.read("zurich/feed-b", "supply_watts", 1600.0)
    assert kinds(hall.decide()) == []
    hall.read("zurich/feed-b", "cap_watts", 0.0)
    assert kinds(hall.decide()) != []


def test_a_person_moves_a_job_to_the_site_they_name_and_it_goes_on_there() -> None:
    hall = a_hall(ladder=a_ladder({"cap_power": "50%"}))
    origin = hall.job().place
    hall.fold(Asked(at=hall.at, job="r1/train", want="migrate", to="oslo", actor="ada"))
    decision = hall.decide()
    assert kinds(decision) == [("pause", "r1/train")]
    assert decision.actions[0].because == "asked to migrate to oslo"
    hall.obey(decision)
    moved = hall.decide()
    assert kinds(moved) == [("migrate", "r1/train")]
    hall.obey(moved)
    place = hall.job().place
    assert origin is not None
    assert place is not None
    assert (origin.site, place.site) == ("zurich", "oslo")
    assert (hall.job().asked, hall.job().returns_to) == ("", None)
    assert_ledger_is_true(hall.state)


def test_a_job_that_no_other_site_takes_runs_on_where_it_is() -> None:
    hall = a_hall(ladder=a_ladder({"cap_power": "50%"}))
    hall.fold(Asked(at=hall.at, job="r1/train", want="migrate", to="bergen", actor="ada"))
    decision = hall.decide()
    assert kinds(decision) == []
    assert decision.revisit_at is not None
    assert hall.job().state is JobState.RUNNING
