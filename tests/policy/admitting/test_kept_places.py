"""Reservations in an explanation: who has a place kept, who waits behind it, and what fits in between."""

from __future__ import annotations

from building import Hall, a_job, a_policy, a_site, a_world, kinds
from wattline.policy import explain
from wattline.state import JobState

HOUR = 3600.0


def a_hall_with_a_reservation(ends: float | None = 5 * HOUR) -> Hall:
    """Two nodes; one half of one is free and kept for a job of both, since an hour after it came."""
    hall = a_world(a_site(nodes=2), policy=a_policy(sharing={"patience": "1h"}))
    hall.run(*[a_job(f"r{n}/train", gpus=4, max_duration_seconds=ends) for n in range(4)])
    hall.submit(a_job("big/train", gpus=16, project="vision"))
    hall.decide()
    hall.wait(2 * HOUR)
    hall.decide()
    hall.ended("r0/train")
    hall.decide()
    assert "big/train" in hall.state.reservations
    return hall


def wait_behind(hall: Hall, **changes: object) -> None:
    hall.submit(a_job("small/train", gpus=4, **changes))
    assert kinds(hall.decide()) == []


def test_a_job_behind_a_reservation_names_who_holds_it_since_when_and_until_when() -> None:
    hall = a_hall_with_a_reservation()
    wait_behind(hall, max_duration_seconds=9 * HOUR)
    found = explain(hall.snapshot(), hall.policy, "small/train")
    assert found.kept is not None
    assert (found.kept.holder, found.kept.project, found.kept.is_own) == ("big/train", "vision", False)
    assert found.kept.starts_at == hall.at + 3 * HOUR
    assert found.kept.leavers[-1] == "r3/train"
    assert found.blocked_by is not None
    assert (found.blocked_by.rule, found.blocked_by.subject) == ("reservation", "big/train")
    assert found.say == (
        "small/train waits behind the reservation of big/train (vision), kept for 0 s, "
        "which starts in 3 h when r3/train ends. Starts now if it declared 3 h at most."
    )


def test_the_duration_that_is_offered_starts_it_and_a_minute_more_does_not() -> None:
    hall = a_hall_with_a_reservation()
    hall.wait(25)  # so that what is left is no whole number of minutes
    wait_behind(hall)
    option = next(
        one for one in explain(hall.snapshot(), hall.policy, "small/train").options if "declare" in one.change
    )
    assert option.fields == {"constraints.max_duration": "179min"}
    hall.submit(a_job("longer/train", gpus=4, max_duration_seconds=180 * 60.0))
    assert kinds(hall.decide()) == []
    hall.submit(a_job("short/train", gpus=4, max_duration_seconds=179 * 60.0))
    assert kinds(hall.decide()) == [("start", "short/train")]


def test_where_nobody_who_must_leave_set_an_end_nothing_is_offered_in_between() -> None:
    hall = a_hall_with_a_reservation(ends=None)
    wait_behind(hall, max_duration_seconds=60.0)
    found = explain(hall.snapshot(), hall.policy, "small/train")
    assert "once r3/train has left, which set no end" in found.say
    assert not [option for option in found.options if "declare" in option.change]


def test_the_holder_says_what_is_kept_and_for_whom_it_still_waits() -> None:
    hall = a_hall_with_a_reservation()
    found = explain(hall.snapshot(), hall.policy, "big/train")
    assert found.kept is not None
    assert found.kept.is_own
    assert (found.kept.free_gpus, found.kept.gpus) == (4, 16)
    assert found.kept.leavers == ("r1/train", "r2/train", "r3/train")
    assert "4 of 16 GPUs free so far (overtaken for longer than 1 h)" in found.say
    assert "starts in 3 h when r3/train ends" in found.say


def test_what_is_kept_for_others_is_not_offered_by_way_of_a_cap_or_another_gpu() -> None:
    hall = a_hall_with_a_reservation()
    wait_behind(hall, gpu_models=("A100",), peak_watts=None)
    changes = [option.change for option in explain(hall.snapshot(), hall.policy, "small/train").options]
    assert [change for change in changes if "cap" in change or "accept" in change] == []


def test_who_waits_for_a_place_beside_what_is_kept_is_told_so_when_there_is_one() -> None:
    hall = a_hall_with_a_reservation()
    hall.submit(a_job("small/train", gpus=4))
    before = explain(hall.snapshot(), hall.policy, "small/train")
    later = [option for option in before.options if option.change.startswith("wait until")]
    assert later == [], "those who leave make way for who has a place kept"


def test_a_job_that_rests_after_a_failure_says_until_when() -> None:
    from wattline.state import Ending

    hall = a_world(policy=a_policy(thresholds={"restart_backoff": "5min"}))
    hall.run(a_job())
    hall.wait(10)
    hall.ended("r1/train", Ending.FAILED)
    hall.decide()
    found = explain(hall.snapshot(), hall.policy, "r1/train")
    assert found.state is JobState.WAITING
    assert found.blocked_by is not None
    assert found.blocked_by.rule == "restart.backoff"
    assert "tried again in 5 min" in found.say
