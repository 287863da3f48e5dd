"""Jobs with a deadline wait for better hours, and never too long."""

from __future__ import annotations

from typing import Any

import pytest

from building import MONDAY, Hall, a_job, a_policy, a_site, a_world, kinds
from wattline.state import (
    Decision,
    JobRequest,
    JobState,
    Outcome,
    Outlooked,
    OutlookHour,
    dump_state,
    load_state,
)

HOUR = 3600.0
DIRTY, CLEAN = 412.0, 230.0


def a_shifting_policy(**changes: Any) -> Any:
    return a_policy(shifting={"by": "carbon", "margin": "10min", "margin_share": "0%"} | changes)


def a_waitable_job(name: str = "r1/train", **changes: Any) -> JobRequest:
    asked: dict[str, Any] = {
        "max_duration_seconds": 2 * HOUR - 70.0,
        "deadline_at": MONDAY + 24 * HOUR,
        "checkpoints": True,
        "peak_watts": 5000.0,
    }
    return a_job(name, **(asked | changes))


def tell(hall: Hall, *grams: float | None, site: str = "zurich", usd: float | None = 0.1) -> None:
    """What the hours from this one on are expected to be."""
    hours = tuple(OutlookHour(value, usd) for value in grams)
    hall.fold(Outlooked(at=hall.at, site=site, begins_at=hall.at // HOUR * HOUR, hours=hours))


def a_day(*clean: int) -> list[float]:
    return [CLEAN if hour in clean else DIRTY for hour in range(30)]


def test_a_job_waits_for_its_hour_and_says_what_that_saves() -> None:
    hall = a_world(policy=a_shifting_policy())
    tell(hall, *a_day(11, 12, 13))
    hall.submit(a_waitable_job())
    decision = hall.decide()
    assert kinds(decision) == []
    (verdict,) = decision.verdicts
    assert verdict.outcome is Outcome.WAIT
    assert verdict.sentence() == (
        "shift.carbon of zurich makes it wait: 412 g/kWh now, 230 g/kWh expected at 11:00 UTC; "
        "until better 11 h, saves 1.82 kg"
    )
    assert decision.revisit_at == MONDAY + HOUR


def test_it_starts_when_its_hour_has_come() -> None:
    hall = a_world(policy=a_shifting_policy())
    tell(hall, *a_day(3, 4, 5))
    hall.submit(a_waitable_job())
    hall.decide()
    hall.wait(3 * HOUR)
    assert kinds(hall.decide()) == [("start", "r1/train")]


@pytest.mark.parametrize(
    "changes",
    [
        {"deadline_at": None},
        {"max_duration_seconds": None},
        {"deadline_at": MONDAY + 2 * HOUR + 1200.0},
    ],
    ids=["no deadline", "no longest duration", "no slack"],
)
def test_who_cannot_wait_starts_at_once(changes: dict[str, Any]) -> None:
    hall = a_world(policy=a_shifting_policy())
    tell(hall, *a_day(3, 4, 5))
    hall.submit(a_waitable_job(**changes))
    assert kinds(hall.decide()) == [("start", "r1/train")]


@pytest.mark.parametrize(
    "grams",
    [[], [None, *a_day(3, 4)], [DIRTY, *[None] * 29], [DIRTY] * 30, [DIRTY, *[DIRTY - 10.0] * 29]],
    ids=["nothing", "not this hour", "nothing later", "all the same", "hardly better"],
)
def test_where_nothing_better_is_known_a_job_runs_as_if_nobody_knew(grams: list[float | None]) -> None:
    hall = a_world(policy=a_shifting_policy())
    tell(hall, *grams)
    hall.submit(a_waitable_job())
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_an_outlook_that_is_too_old_is_none() -> None:
    hall = a_world(policy=a_shifting_policy(outlook_max_age="1h"))
    tell(hall, *a_day(11, 12, 13))
    hall.submit(a_waitable_job())
    assert kinds(hall.decide()) == []
    hall.wait(HOUR + 1.0)
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_by_price_a_negative_hour_is_worth_waiting_for() -> None:
    hall = a_world(policy=a_shifting_policy(by="price"))
    hours = [OutlookHour(None, -0.02 if hour in (5, 6, 7) else 0.1) for hour in range(30)]
    hall.fold(Outlooked(at=hall.at, site="zurich", begins_at=MONDAY, hours=tuple(hours)))
    hall.submit(a_waitable_job())
    decision = hall.decide()
    assert kinds(decision) == []
    assert "-0.020 USD/kWh expected at 05:00 UTC" in decision.verdicts[0].sentence()


def test_the_deadline_wins_over_any_hour() -> None:
    hall = a_world(policy=a_shifting_policy())
    hall.submit(a_waitable_job(deadline_at=MONDAY + 10 * HOUR))
    started: list[Decision] = []
    while not started:
        tell(hall, DIRTY, *[CLEAN] * 29)  # it is always better a bit later
        decision = hall.decide()
        started += [decision] if decision.actions else []
        assert decision.due_at is not None
        hall.at = decision.due_at
    assert started[0].at + 2 * HOUR <= MONDAY + 10 * HOUR
    assert started[0].at >= MONDAY + 6 * HOUR


def test_when_all_could_not_be_done_later_some_start_now() -> None:
    hall = a_world(a_site(nodes=1, gpus=2), policy=a_shifting_policy())
    tell(hall, *a_day(6, 7, 8))
    names = [f"r{number}/train" for number in range(6)]
    # Two GPUs for twelve hours' work within seven hours: waiting for the sixth is not for all.
    hall.submit(*[a_waitable_job(name, deadline_at=MONDAY + 7.5 * HOUR) for name in names])
    assert 0 < len(kinds(hall.decide())) <= 2


def test_a_running_job_is_suspended_and_comes_back() -> None:
    hall = a_world(policy=a_shifting_policy())
    hall.run(a_waitable_job())
    hall.wait(HOUR)
    tell(hall, *a_day(4, 5, 6))
    decision = hall.decide()
    assert kinds(decision) == [("pause", "r1/train")]
    assert decision.actions[0].because.startswith("shift.carbon of zurich")
    hall.saved("r1/train")
    hall.obey(decision)
    assert hall.job().state is JobState.WAITING
    assert kinds(hall.decide()) == []
    hall.wait(4 * HOUR)
    tell(hall, *a_day(0, 1, 2))
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_who_was_suspended_often_enough_is_left_alone() -> None:
    hall = a_world(policy=a_shifting_policy(most_suspends=1))
    hall.run(a_waitable_job())
    for expected in ([("pause", "r1/train")], []):
        hall.wait(HOUR)
        tell(hall, *a_day(1, 2, 3))
        decision = hall.decide()
        assert kinds(decision) == expected
        hall.obey(decision)
        hall.wait(HOUR)
        tell(hall, *a_day(0, 1, 2))
        hall.obey(hall.decide())


@pytest.mark.parametrize("changes", [{"checkpoints": False}, {"deadline_at": None}])
def test_who_cannot_be_suspended_goes_on(changes: dict[str, Any]) -> None:
    hall = a_world(policy=a_shifting_policy())
    hall.run(a_waitable_job(**changes))
    hall.wait(HOUR)
    tell(hall, *a_day(4, 5, 6))
    assert kinds(hall.decide()) == []


def test_without_checkpoints_hours_must_be_in_one_piece() -> None:
    hall = a_world(policy=a_shifting_policy())
    tell(hall, *a_day(0, 5, 6))
    hall.submit(a_waitable_job("apart/train"), a_waitable_job("whole/train", checkpoints=False))
    decision = hall.decide()
    assert kinds(decision) == [("start", "apart/train")]
    hall.obey(decision)
    hall.wait(5 * HOUR)
    tell(hall, *a_day(0, 1))
    assert kinds(hall.decide()) == [("start", "whole/train")]


def test_a_job_runs_now_where_another_site_is_clean_now() -> None:
    hall = a_world(a_site(), a_site("oslo"), policy=a_shifting_policy())
    tell(hall, *a_day(5, 6, 7))
    tell(hall, *a_day(0, 1, 2), site="oslo")
    hall.submit(a_waitable_job())
    assert kinds(hall.decide()) == [("start", "r1/train")]
    place = hall.job().place
    assert place is not None
    assert place.site == "oslo"


def test_a_running_job_moves_to_where_it_is_clean() -> None:
    hall = a_world(a_site(), a_site("oslo"), policy=a_shifting_policy())
    hall.run(a_waitable_job(residency=()))
    place = hall.job().place
    assert place is not None
    other = {"zurich": "oslo", "oslo": "zurich"}[place.site]
    hall.wait(HOUR)
    tell(hall, *[DIRTY] * 30, site=place.site)
    tell(hall, *[CLEAN] * 30, site=other)
    decision = hall.decide()
    assert kinds(decision) == [("pause", "r1/train")]
    hall.saved("r1/train", site=place.site)
    hall.obey(decision)
    assert kinds(hall.decide()) == [("start", "r1/train")]
    moved = hall.job().place
    assert moved is not None
    assert moved.site == other


def test_between_two_hours_nobody_is_forgotten() -> None:
    hall = a_world(policy=a_shifting_policy())
    tell(hall, *a_day(0, 1, 2))
    hall.run(a_waitable_job())
    hall.wait(600.0)
    assert hall.decide().revisit_at == MONDAY + HOUR


def test_with_the_default_policy_an_outlook_changes_nothing() -> None:
    told, plain = a_world(), a_world()
    tell(told, *a_day(11, 12, 13))
    for hall in (told, plain):
        hall.submit(a_waitable_job())
    assert told.decide() == plain.decide()


def test_outlooks_survive_a_dump_and_an_older_one_changes_nothing() -> None:
    hall = a_world()
    tell(hall, CLEAN)
    newest = hall.state.outlooks["zurich"]
    hall.fold(Outlooked(at=hall.at - 1.0, site="zurich", begins_at=0.0))
    hall.fold(Outlooked(at=hall.at + 1.0, site="nowhere", begins_at=0.0))
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert loaded.outlooks == {"zurich": newest}
    assert loaded.digest() == hall.state.digest()
