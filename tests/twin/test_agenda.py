"""What is done next: of each attempt the end that was planned last."""

from __future__ import annotations

import math

from building import a_job
from wattline.twin.agenda import Agenda
from wattline.twin.attempts import Attempt, Progress
from wattline.twin.workload import Arrival


def an_attempt(job: str) -> Attempt:
    arrival = Arrival(at=0.0, request=a_job(job), work_seconds=10.0, utilisation=0.5)
    return Attempt(
        job=job,
        number=1,
        progress=Progress(arrival),
        nodes=((0, 1),),
        site="here",
        gpus=1,
        spread_speed=1.0,
        started_at=0.0,
        at=0.0,
        working_at=0.0,
        start_charged_to="",
    )


def an_agenda(*jobs: str) -> tuple[Agenda, dict[str, Attempt]]:
    attempts = {job: an_attempt(job) for job in jobs}
    return Agenda(attempts), attempts


def test_an_agenda_without_plans_has_no_end() -> None:
    agenda, _ = an_agenda("r/a")
    assert agenda.next_at() == math.inf
    assert list(agenda.due(math.inf)) == []


def test_those_that_are_due_come_in_the_order_of_their_ends_and_once() -> None:
    agenda, attempts = an_agenda("r/a", "r/b", "r/c")
    for job, at in (("r/a", 30.0), ("r/b", 10.0), ("r/c", 20.0)):
        agenda.plan(at, attempts[job])
    assert agenda.next_at() == 10.0
    assert [attempt.job for attempt in agenda.due(20.0)] == ["r/b", "r/c"]
    assert [attempt.job for attempt in agenda.due(20.0)] == []
    assert agenda.next_at() == 30.0


def test_ends_at_the_same_time_come_as_they_were_planned() -> None:
    agenda, attempts = an_agenda("r/b", "r/a")
    for attempt in attempts.values():
        agenda.plan(5.0, attempt)
    assert [attempt.job for attempt in agenda.due(5.0)] == ["r/b", "r/a"]


def test_the_end_that_was_planned_last_counts() -> None:
    agenda, attempts = an_agenda("r/a")
    agenda.plan(10.0, attempts["r/a"])
    agenda.plan(20.0, attempts["r/a"])
    assert agenda.next_at() == 20.0
    assert list(agenda.due(15.0)) == []
    assert [attempt.job for attempt in agenda.due(20.0)] == ["r/a"]


def test_who_has_left_is_not_due() -> None:
    agenda, attempts = an_agenda("r/a")
    agenda.plan(10.0, attempts["r/a"])
    del attempts["r/a"]
    assert agenda.next_at() == math.inf


def test_the_end_of_a_later_attempt_is_not_the_end_of_one_that_left() -> None:
    agenda, attempts = an_agenda("r/a")
    agenda.plan(10.0, attempts["r/a"])
    attempts["r/a"] = an_attempt("r/a")
    agenda.plan(40.0, attempts["r/a"])
    assert list(agenda.due(10.0)) == []
    assert agenda.next_at() == 40.0


def test_what_one_that_is_due_changes_is_seen_by_the_next() -> None:
    agenda, attempts = an_agenda("r/a", "r/b")
    for attempt in attempts.values():
        agenda.plan(5.0, attempt)
    seen = []
    for attempt in agenda.due(5.0):
        seen.append(attempt.job)
        agenda.plan(9.0, attempts["r/b"])
    assert seen == ["r/a"]
    assert agenda.next_at() == 9.0
