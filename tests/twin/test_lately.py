"""What came lately comes again, and jobs that still run say that some last longer."""

from __future__ import annotations

from itertools import islice, takewhile

from building import MONDAY, a_job, a_site, a_world
from wattline.state import JobRequest
from wattline.twin.lately import Ended, Lately, lately_of
from wattline.twin.remaining import Lasted

HOUR = 3600.0


def a_day(every: float = 600.0) -> Lately:
    lately = Lately()
    for number in range(int(24 * HOUR / every)):
        lately.come(MONDAY + every * number, a_job(f"r{number}/train", gpus=1 + number % 2))
    return lately


def within(lately: Lately, at: float, hours: float, sample: int = 0) -> list[tuple[float, JobRequest]]:
    return list(takewhile(lambda came: came[0] < at + hours * HOUR, lately.arrivals(at, sample)))


def test_as_many_come_in_a_day_as_came_in_the_last() -> None:
    coming = within(a_day(), MONDAY + 24 * HOUR, 24)
    assert len(coming) == 144
    assert {request.gpus for _, request in coming} == {1, 2}
    assert [at for at, _ in coming] == sorted(at for at, _ in coming)
    assert len({request.job for _, request in coming}) == 144


def test_futures_differ_where_hours_did_and_each_is_the_same_again() -> None:
    lately = Lately()
    for number in range(48):
        lately.come(MONDAY + number**2 * 36.0, a_job(f"r{number}/train"))
    at = MONDAY + 24 * HOUR
    assert within(lately, at, 5, sample=1) == within(lately, at, 5, sample=1)
    assert within(lately, at, 5, sample=1) != within(lately, at, 5, sample=2)


def test_less_than_an_hour_says_nothing_of_what_comes() -> None:
    lately = Lately()
    lately.come(MONDAY, a_job())
    lately.come(MONDAY + 0.5 * HOUR, a_job("r2/train"))
    assert not list(islice(lately.arrivals(MONDAY + 0.9 * HOUR, 0), 1))
    assert list(islice(lately.arrivals(MONDAY + 1.1 * HOUR, 0), 1))
    assert not list(islice(Lately().arrivals(MONDAY, 0), 1))


def test_a_day_in_which_nobody_came_brings_nobody() -> None:
    assert not list(islice(a_day().arrivals(MONDAY + 72 * HOUR, 0), 1))


def test_jobs_of_as_many_gpus_count_whether_they_ended_or_go_on() -> None:
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("r0/train", gpus=2), a_job("r1/train", gpus=1))
    hall.wait(HOUR)
    lately = Lately()
    for _ in range(20):
        lately.ended.append(Ended(2, MONDAY, MONDAY + 60.0, 60.0))
    assert lately.lasted_by_gpus(hall.state, hall.at) == {
        2: [*[Lasted(60.0)] * 20, Lasted(HOUR, goes_on=True)]
    }


def test_many_are_thinned_without_changing_how_long_they_last() -> None:
    hall, lately = a_world(), Lately()
    for number in range(5000):
        lately.ended.append(Ended(1, hall.at, hall.at, float(number)))
    (told,) = lately.lasted_by_gpus(hall.state, hall.at).values()
    assert len(told) == 200
    assert abs(sum(each.seconds for each in told) / 200 - 2499.5) < 30.0


def test_a_state_tells_the_same_of_the_runs_it_knows() -> None:
    hall = a_world(a_site(nodes=1))
    for number in range(20):
        hall.run(a_job(f"r{number}/train", gpus=8, max_duration_seconds=400.0))
        hall.wait(100.0)
        hall.ended(f"r{number}/train")
    lately = lately_of(hall.state)
    assert [request.job for _, request in lately.came] == [f"r{number}/train" for number in range(20)]
    assert {(ended.gpus, ended.seconds) for ended in lately.ended} == {(8, 100.0)}
    assert lately.used_shares() == [0.25] * 20
