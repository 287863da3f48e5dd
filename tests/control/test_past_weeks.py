from __future__ import annotations

from building import MONDAY, a_job, a_world
from wattline.control import StepRecord
from wattline.control.past_weeks import PastWeeks
from wattline.state import AttemptEnded, Decision, Ending, Usage
from wattline.state.account import WEEK_SECONDS, week_of


def test_each_week_has_what_ended_in_it() -> None:
    hall, weeks = a_world(), PastWeeks()
    for number, gpu_hours in enumerate((1.0, 2.0, 4.0)):
        run = f"r{number}/train"
        hall.run(a_job(run))
        hall.wait(60.0)
        ended = AttemptEnded(
            at=hall.at, job=run, attempt=1, ending=Ending.SUCCEEDED, usage=Usage(gpu_hours=gpu_hours)
        )
        hall.fold(ended)
        step = StepRecord(events=(ended, ended), digest="", decision=Decision(at=hall.at))
        weeks.note(hall.state, step)
        if number == 1:
            hall.wait(WEEK_SECONDS)
    again = PastWeeks(weeks.memory())
    first = week_of(MONDAY)
    assert [again.used(week, "nlp").gpu_hours for week in (first, first + 1, first + 2)] == [3.0, 4.0, 0.0]
    assert again.projects(first) == ["nlp"]
    assert again.used(first, "vision") == Usage()
