"""Who begins at once, who waits for how long, and what each is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from building import GPU_WATTS, Hall, a_job, a_ladder, a_policy, a_site, a_world, kinds
from wattline.facility import Site, Starts
from wattline.policy import decide, explain
from wattline.state import Decision, Ending, JobRequest, JobState, Snapshot, Verdict, dump_state, load_state

FOUR_GPUS = 4 * GPU_WATTS


AS_THEY_COME = Starts()


def a_ramped_site(
    watts_per_minute: float | None, name: str = "zurich", *, starts: Starts = AS_THEY_COME, **changes: Any
) -> Site:
    site = a_site(name, **changes)
    supplies = tuple(replace(supply, ramp_watts_per_minute=watts_per_minute) for supply in site.supplies)
    return replace(site, supplies=supplies, starts=starts)


def a_ramped_world(watts_per_minute: float | None, **changes: Any) -> Hall:
    return a_world(a_ramped_site(watts_per_minute, nodes=8, **changes))


def jobs(*numbers: int, gpus: int = 4, **changes: Any) -> tuple[JobRequest, ...]:
    return tuple(a_job(f"r{number}/train", gpus=gpus, **changes) for number in numbers)


def started(decision: Decision) -> list[str]:
    return [job for kind, job in kinds(decision) if kind == "start"]


def waits(decision: Decision, job: str) -> Verdict:
    (found,) = [verdict for verdict in decision.verdicts if verdict.job == job and not verdict.allows]
    return found


def test_as_many_begin_as_the_ramp_bears_and_the_rest_at_computed_times() -> None:
    hall = a_ramped_world(2 * FOUR_GPUS)
    hall.submit(*jobs(1, 2, 3, 4, 5))
    first = hall.decide()
    hall.obey(first)
    assert started(first) == ["r1/train", "r2/train"]
    assert [waits(first, f"r{number}/train").numbers["starts_in_seconds"] for number in (3, 4, 5)] == [
        60,
        60,
        120,
    ]
    assert first.revisit_at == hall.at + 60
    hall.wait(60)
    second = hall.decide()
    hall.obey(second)
    assert started(second) == ["r3/train", "r4/train"]
    hall.wait(59.9)
    assert started(hall.decide()) == []
    hall.wait(0.2)
    assert started(hall.decide()) == ["r5/train"]


def test_the_verdict_says_what_was_added_what_is_the_limit_and_when_it_begins() -> None:
    hall = a_ramped_world(2 * FOUR_GPUS)
    hall.run(*jobs(1))
    hall.wait(36)
    hall.submit(a_job("r2/train", gpus=6))
    verdict = waits(hall.decide(), "r2/train")
    assert (verdict.rule, verdict.subject) == ("ramp.supply", "zurich/feed-a")
    assert verdict.numbers == {
        "short_by_watts": 800.0,
        "asked_watts": 2400.0,
        "begun_watts": 1600.0,
        "limit_watts": 3200.0,
        "span_seconds": 60.0,
        "starts_in_seconds": 24.0,
    }
    assert "wait 24 s; no more than 3.2 kW/min" in verdict.change
    assert "ramp.supply of zurich/feed-a" in explain(hall.snapshot(), hall.policy, "r2/train").say


def test_the_first_in_line_is_not_kept_waiting_by_small_ones_behind_it() -> None:
    """With a stream of small jobs that would each fit the ramp, the large one begins as if it were alone."""
    hall = a_ramped_world(2 * FOUR_GPUS)
    hall.run(*jobs(1))
    hall.wait(20)
    hall.submit(a_job("r2/train", gpus=8), a_job("r3/train", gpus=1), a_job("r4/train", gpus=1))
    began = {}
    for second in range(20, 140):
        hall.submit(a_job(f"small{second}/train", gpus=1))
        decision = hall.decide()
        hall.obey(decision)
        began.update(dict.fromkeys(started(decision), second))
        if "r2/train" in began:
            break
        hall.wait(1)
    assert began["r2/train"] == 60
    assert "r3/train" not in began


def test_small_ones_go_first_where_that_delays_nobody() -> None:
    """The large one can begin only in a minute: by then what small ones add now has been taken up."""
    hall = a_ramped_world(2 * FOUR_GPUS)
    hall.run(*jobs(1))
    hall.submit(a_job("r2/train", gpus=8), a_job("r3/train", gpus=1))
    assert started(hall.decide()) == ["r3/train"]


def test_what_is_on_its_way_counts_until_a_minute_after_it_has_begun() -> None:
    hall = a_ramped_world(FOUR_GPUS)
    hall.submit(*jobs(1, 2))
    assert started(hall.decide()) == ["r1/train"]
    hall.wait(50)
    hall.started("r1/train")
    hall.wait(30)
    assert started(hall.decide()) == []
    hall.wait(30)
    assert started(hall.decide()) == ["r2/train"]


def test_what_ended_no_longer_counts() -> None:
    hall = a_ramped_world(FOUR_GPUS)
    hall.run(*jobs(1))
    hall.submit(*jobs(2))
    assert started(hall.decide()) == []
    hall.ended("r1/train")
    assert started(hall.decide()) == ["r2/train"]


def test_a_returning_job_keeps_to_the_ramp_too() -> None:
    hall = a_ramped_world(FOUR_GPUS)
    hall.run(*jobs(1, checkpoints=True))
    hall.asked("r1/train", "pause")
    hall.obey(hall.decide())
    hall.submit(*jobs(2))
    hall.obey(hall.decide())
    hall.asked("r1/train", "resume")
    assert kinds(hall.decide()) == []
    hall.wait(60)
    assert kinds(hall.decide()) == [("resume", "r1/train")]


def test_a_job_too_large_for_a_minute_begins_under_a_cap_and_is_raised() -> None:
    hall = a_ramped_world(FOUR_GPUS)
    hall.submit(a_job("r1/train", gpus=8, checkpoints=True))
    first = hall.decide()
    hall.obey(first)
    fractions = [first.actions[0].fraction]
    assert 8 * fractions[0] * GPU_WATTS <= FOUR_GPUS
    while fractions[-1] < 1.0:
        hall.wait(60)
        decision = hall.decide()
        hall.obey(decision)
        assert 8 * (decision.actions[0].fraction - fractions[-1]) * GPU_WATTS <= FOUR_GPUS
        fractions.append(decision.actions[0].fraction)
    assert fractions == [0.48, 0.96, 1.0]


def test_a_job_too_large_for_a_minute_that_bears_no_cap_is_refused() -> None:
    hall = a_ramped_world(FOUR_GPUS)
    hall.submit(a_job("r1/train", gpus=8))
    decision = hall.decide()
    assert kinds(decision) == [("refuse", "r1/train")]
    assert "ramp.supply of zurich/feed-a refuses it" in decision.actions[0].because


def test_a_job_too_large_for_one_feed_goes_where_it_may() -> None:
    hall = a_world(a_ramped_site(FOUR_GPUS), a_site("oslo", usd_per_kwh=0.5))
    hall.submit(a_job("r1/train", gpus=8))
    (action,) = hall.decide().actions
    assert action.place is not None
    assert action.place.site == "oslo"


def test_a_cap_is_lifted_only_as_far_as_the_feed_bears_by_now() -> None:
    hall = a_ramped_world(1000.0)
    hall.policy = a_policy(thresholds={"settle": "5s", "clear_for": "20s"})
    hall.submit(a_job("r1/train", gpus=2, ladder=a_ladder({"cap_power": "50%"})))
    hall.obey(hall.decide())
    hall.wait(60)
    hall.read("zurich/r1", "cap_watts", 700.0)
    pressed = hall.decide()
    hall.obey(pressed)
    assert [(action.kind, action.fraction) for action in pressed.actions] == [("cap_power", 0.5)]
    hall.wait(60)
    hall.read("zurich/r1", "cap_watts", 10_000.0)
    hall.run(a_job("r2/train", gpus=2, peak_watts=750.0))
    hall.wait(20)
    hall.obey(hall.decide())
    assert hall.job("r1/train").power_fraction == 0.8  # 240 W of the 400 W that it gave up
    hall.wait(60)
    hall.obey(hall.decide())
    assert hall.job("r1/train").power_fraction == 1.0
    assert hall.job("r1/train").rung == -1


def test_no_more_than_so_many_begin_at_once_at_a_site() -> None:
    hall = a_ramped_world(None, starts=Starts(at_once=2, within_seconds=30.0))
    hall.submit(*jobs(1, 2, 3, 4, 5))
    decision = hall.decide()
    hall.obey(decision)
    assert started(decision) == ["r1/train", "r2/train"]
    verdict = waits(decision, "r5/train")
    assert (verdict.rule, verdict.numbers["starts_in_seconds"]) == ("starts.at_once", 60.0)
    hall.wait(30)
    assert started(hall.decide()) == ["r3/train", "r4/train"]


def test_starts_are_spaced_as_the_policy_says_at_each_site_by_itself() -> None:
    hall = a_world(
        a_site("zurich", region="eu"), a_site("oslo", region="no"), policy=a_policy(starts={"spacing": "5s"})
    )
    hall.submit(*jobs(1, 2, residency=("eu",)), *jobs(3, 4, residency=("no",)))
    began = []
    for _ in range(2):
        decision = hall.decide()
        hall.obey(decision)
        began.append(started(decision))
        hall.wait(5)
    assert began == [["r1/train", "r3/train"], ["r2/train", "r4/train"]]


def test_no_more_than_so_many_read_their_checkpoint_at_once() -> None:
    hall = a_world(a_site(nodes=8), policy=a_policy(starts={"loads_at_once": 1, "within": "20s"}))
    hall.run(*jobs(1, 2))
    for job in ("r1/train", "r2/train"):
        hall.saved(job)
        hall.ended(job, Ending.LOST)
    hall.submit(*jobs(3))
    assert sorted(started(hall.decide())) == ["r1/train", "r3/train"]


def test_a_shape_that_only_waits_for_its_time_is_not_taken_for_stuck() -> None:
    """Three fit; the fourth does not, and must not keep those of its shape that will begin in a minute."""
    hall = a_world(a_ramped_site(FOUR_GPUS, nodes=3, gpus=4))
    hall.submit(*jobs(1, 2, 3, 4))
    for _ in range(3):
        hall.obey(hall.decide())
        hall.wait(60)
    running = [job for job in hall.state.jobs.values() if job.state is JobState.RUNNING]
    assert len(running) == 3


def test_where_many_wait_for_a_ramp_all_begin_in_the_end() -> None:
    hall = a_world(a_ramped_site(FOUR_GPUS, nodes=20, gpus=4))
    hall.submit(*jobs(*range(20)))
    for minute in range(20):
        decision = hall.decide()
        hall.obey(decision)
        assert len(started(decision)) == 1, minute
        hall.wait(60)


def test_a_turn_in_which_nothing_happens_says_nothing_new() -> None:
    hall = a_world(a_ramped_site(FOUR_GPUS, nodes=20, gpus=4))
    hall.submit(*jobs(*range(20)))
    hall.obey(hall.decide())
    hall.wait(1)
    hall.decide()
    hall.wait(1)
    again = hall.decide()
    assert again.is_idle
    assert again.revisit_at == hall.at + 58


def test_a_loaded_state_decides_alike() -> None:
    hall = a_ramped_world(2 * FOUR_GPUS)
    hall.run(*jobs(1))
    hall.wait(7)
    hall.submit(*jobs(2, 3, 4))
    hall.obey(hall.decide())
    hall.wait(11)
    copy = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert decide(Snapshot(copy, hall.at), hall.policy) == decide(hall.snapshot(), hall.policy)


@pytest.mark.parametrize("watts", [None, 1e9])
def test_without_a_limit_that_binds_all_begin_at_once(watts: float | None) -> None:
    hall = a_ramped_world(watts)
    hall.submit(*jobs(1, 2, 3, 4, 5))
    assert len(started(hall.decide())) == 5


def test_of_a_pair_of_feeds_each_counts_for_the_half_it_carries() -> None:
    site = a_ramped_site(FOUR_GPUS, nodes=8, feeds_watts=(1e9, 1e9), redundant=True)
    hall = a_world(site)
    hall.submit(*jobs(1, 2, 3))
    hall.obey(hall.decide())
    assert [job.id for job in hall.state.jobs.values() if job.state is JobState.RUNNING] == [
        "r1/train",
        "r2/train",
    ]


def test_a_policy_that_keeps_a_margin_keeps_it_of_ramps_too() -> None:
    hall = a_ramped_world(2 * FOUR_GPUS)
    hall.policy = a_policy(thresholds={"power_margin": "1%"})
    hall.submit(*jobs(1, 2))
    assert started(hall.decide()) == ["r1/train"]


def test_shared_power_raises_caps_no_quicker_than_the_ramp() -> None:
    """Two jobs on half a cap each; what one that ended leaves is given to them minute by minute."""
    policy = a_policy(power_sharing={"by": "caps", "least_cap": "40%"})
    hall = a_world(a_ramped_site(2400.0, nodes=3, gpus=4, feeds_watts=(3000.0,)), policy=policy)
    hall.submit(*jobs(1, 2, 3, checkpoints=True))
    drawn, worst = [0.0], 0.0
    for turn in range(60):
        hall.obey(hall.decide())
        holding = [hall.job(name) for name in hall.state.holding]
        drawn.append(sum(FOUR_GPUS * job.power_fraction for job in holding))
        worst = max(worst, drawn[-1] - min(drawn[-13:]))
        if turn == 40:
            hall.ended(holding[0].id)
        hall.wait(5)
    assert drawn[-1] > 2500.0
    assert worst <= 2400.0 + 1e-6
