"""What a job is told: played where that can be done in time, by its line where not, corrected either way."""

from __future__ import annotations

import msgspec
import pytest

from building import Hall, a_job, a_site, a_world
from wattline.control import decode_step, encode_step
from wattline.control.record import StepRecord
from wattline.state import AttemptStarted, Decision, Event, Forecasted, Forgotten, RunSubmitted, Snapshot
from wattline.twin.forecast import TwinForecaster
from wattline.twin.foresight import LINES, PLAYED, SLOTS, Foresight

HOUR = 3600.0
HASTY = TwinForecaster(budget_seconds=0.0)


def a_line(foresight: Foresight, *, waiting: int = 5, every: float = 600.0) -> Hall:
    """One node; jobs for all of it start every ten minutes, and some more wait."""
    hall = a_world(a_site(nodes=1))
    told: list[Event] = []
    for number in range(30):
        job = a_job(f"r{number}/train", gpus=8)
        told.append(RunSubmitted(at=hall.at, run=f"r{number}", pipeline="p", jobs=(job,)))
        hall.run(job)
        told.append(AttemptStarted(at=hall.at, job=job.job, attempt=1))
        hall.wait(every)
        hall.ended(job.job)
    hall.run(a_job("now/train", gpus=8))
    for number in range(waiting):
        job = a_job(f"w{number}/train", gpus=8)
        told.append(RunSubmitted(at=hall.at, run=f"w{number}", pipeline="p", jobs=(job,)))
        hall.submit(job)
    foresight.hear(told)
    return hall


def looked(foresight: Foresight, hall: Hall) -> Forecasted:
    found = foresight.forecast(hall.state, hall.policy, hall.at)
    assert found is not None
    return found


def test_a_queue_too_long_to_be_played_is_told_by_how_fast_its_line_moves() -> None:
    foresight = Foresight(HASTY)
    hall = a_line(foresight)
    found = looked(foresight, hall)
    assert (found.source, found.samples) == (LINES, 0)
    assert [expected.job for expected in found.starts] == [f"w{number}/train" for number in range(5)]
    for place, expected in enumerate(found.starts, 1):
        assert expected.p50_at is not None
        assert expected.p90_at is not None
        assert hall.at < expected.p50_at < expected.p90_at
        assert 0.9 * place * 600.0 < expected.p50_at - hall.at < 1.1 * place * 600.0 + 60.0


def test_one_that_can_be_played_in_time_is() -> None:
    foresight = Foresight(TwinForecaster(budget_seconds=1e9))
    found = looked(foresight, a_line(foresight, waiting=2))
    assert found.source == PLAYED
    assert found.samples > 0


def test_a_job_is_told_the_moment_it_comes_and_that_is_what_the_next_forecast_says() -> None:
    foresight = Foresight(HASTY)
    hall = a_line(foresight)
    hall.submit(a_job("x/train", gpus=8))
    at_once = foresight.expect(hall.state, hall.policy, hall.job("x/train"), hall.at)
    assert at_once == looked(foresight, hall).starts[-1]


def test_starts_that_come_late_make_the_next_forecast_later() -> None:
    foresight = Foresight(HASTY)
    hall = a_line(foresight)
    before = looked(foresight, hall)
    foresight.hear([before])
    p50_at = before.starts[0].raw_p50_at
    assert p50_at is not None
    late = hall.at + 20 * (p50_at - hall.at)
    learnt = [AttemptStarted(at=late, job=expected.job, attempt=1) for expected in before.starts]
    same = Foresight(HASTY)
    a_line(same)
    foresight.hear(learnt)
    same.hear(learnt)  # it sees the same starts, and was told of no forecast
    job = hall.job("w0/train")
    at = late + 3000.0  # so that it waits about as long as those that were late
    corrected, plain = (each.expect(hall.state, hall.policy, job, at).p90_at for each in (foresight, same))
    assert corrected is not None
    assert plain is not None
    assert corrected > plain * (1 + 1e-9)


def test_hearing_a_journal_again_leads_to_the_same() -> None:
    foresight, again = Foresight(HASTY), Foresight(HASTY)
    hall = a_line(foresight)
    a_line(again)
    events: list[Event] = [looked(foresight, hall)]
    events += [
        AttemptStarted(at=hall.at + 900.0 * place, job=f"w{place}/train", attempt=1) for place in (1, 2)
    ]
    foresight.hear(events)
    for event in events:
        record = StepRecord(events=(event,), digest="", decision=Decision(at=hall.at))
        again.hear(decode_step(encode_step(record)).events)
    assert looked(again, hall) == looked(foresight, hall)


def test_a_forecast_of_an_earlier_version_is_read_and_teaches_nothing() -> None:
    old = b'{"event":"Forecasted","at":1.0,"starts":[["w0/train",2.0,3.0]],"samples":5,"horizon_seconds":9.0}'
    event = msgspec.json.decode(old, type=Forecasted)
    foresight, untold = Foresight(HASTY), Foresight(HASTY)
    hall = a_line(foresight)
    a_line(untold)
    start = AttemptStarted(at=hall.at, job="w0/train", attempt=1)
    foresight.hear([event, start])
    untold.hear([start])
    assert looked(foresight, hall) == looked(untold, hall)


def test_runs_that_are_forgotten_leave_nothing_open() -> None:
    foresight = Foresight(HASTY)
    hall = a_line(foresight)
    foresight.hear([looked(foresight, hall), Forgotten(at=hall.at, runs=tuple(hall.state.runs))])
    before = looked(foresight, hall)
    foresight.hear([AttemptStarted(at=hall.at + 1e6, job="w0/train", attempt=1)])
    assert looked(foresight, hall) == before


def test_what_was_told_is_what_is_explained() -> None:
    foresight = Foresight(HASTY)
    hall = a_line(foresight)
    found = looked(foresight, hall)
    hall.fold(found)
    expected = Snapshot(hall.state, hall.at).expected("w3/train")
    assert expected == found.starts[3]
    assert expected.p50_at == pytest.approx(found.starts[3].p50_at)


def a_line_that_says(foresight: Foresight, *, waiting: int = 5, silent: bool = False) -> Hall:
    """One node, taken for an hour; then jobs for all of it wait, ten minutes each."""
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("now/train", gpus=8, max_duration_seconds=HOUR))
    for number in range(waiting):
        seconds = None if silent and number == waiting - 1 else 600.0
        job = a_job(f"w{number}/train", gpus=8, max_duration_seconds=seconds)
        foresight.hear([RunSubmitted(at=hall.at, run=f"w{number}", pipeline="p", jobs=(job,))])
        hall.submit(job)
    return hall


def test_where_all_say_how_long_they_take_a_job_is_pledged_a_time_after_its_turn() -> None:
    foresight = Foresight(HASTY)
    hall = a_line_that_says(foresight)
    found = looked(foresight, hall)
    assert found.source == SLOTS
    for place, expected in enumerate(found.starts):
        assert expected.p50_at is not None
        assert expected.p50_at - hall.at == pytest.approx(HOUR + place * 600.0, rel=0.06)
        assert expected.by_at is not None
        assert expected.p90_at is not None
        assert expected.p50_at < expected.p90_at <= expected.by_at


def test_nothing_is_pledged_where_one_does_not_say_how_long_it_takes() -> None:
    foresight = Foresight(HASTY)
    found = looked(foresight, a_line_that_says(foresight, silent=True))
    assert found.source == LINES
    assert all(expected.by_at is None for expected in found.starts)


def test_a_queue_that_is_played_is_pledged_too_where_all_say() -> None:
    foresight = Foresight(TwinForecaster(budget_seconds=1e9))
    found = looked(foresight, a_line_that_says(foresight, waiting=2))
    assert found.source == PLAYED
    assert all(expected.by_at is not None for expected in found.starts)


def test_pledges_that_were_broken_make_the_next_one_later_and_a_journal_tells_the_same() -> None:
    foresight, again, fresh = Foresight(HASTY), Foresight(HASTY), Foresight(HASTY)
    hall = a_line_that_says(foresight, waiting=40)
    for each in (again, fresh):
        a_line_that_says(each, waiting=40)
    told = looked(foresight, hall)
    events: list[Event] = [told]
    for number in range(30):
        late = hall.at + 30.0 * (HOUR + number * 600.0)
        events.append(AttemptStarted(at=late, job=f"w{number}/train", attempt=1))
    foresight.hear(events)
    again.hear(events)
    before, after = looked(fresh, hall).starts[-1], looked(foresight, hall).starts[-1]
    assert before.by_at is not None
    assert after.by_at is not None
    assert after.by_at > before.by_at
    assert looked(again, hall) == looked(foresight, hall)
