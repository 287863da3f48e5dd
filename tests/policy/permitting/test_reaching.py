"""A job goes on where its checkpoint can be had, and what keeps it from there is no fault of its own."""

from __future__ import annotations

import pytest

from building import Hall, a_job, a_link, a_site, a_world, kinds
from wattline.policy import explain
from wattline.policy.giving_way.ladder import choose_elsewhere
from wattline.spec.ladder import Rung, RungKind
from wattline.state import JobState, Place


def a_job_that_could_not_move() -> Hall:
    """It fills its site, was asked to go to the other, and its checkpoint did not come there."""
    hall = a_world(a_site("zurich", nodes=1), a_site("oslo", nodes=1), links=[a_link(("zurich", "oslo"))])
    hall.run(a_job(gpus=8, checkpoints=True, restart_max=0))
    assert place(hall).site == "zurich"
    hall.saved("r1/train", site="zurich", step=7)
    hall.asked("r1/train", "migrate")
    hall.obey(hall.decide())
    (begins,) = hall.decide().actions
    assert (begins.kind.value, begins.place and begins.place.site) == ("migrate", "oslo")
    hall.failed(begins, "its checkpoint: nobody hands it over", unreached=True)
    return hall


def place(hall: Hall) -> Place:
    found = hall.job().place
    assert found is not None
    return found


def test_who_cannot_have_its_checkpoint_goes_back_to_it_and_uses_up_no_restart() -> None:
    hall = a_job_that_could_not_move()
    assert (hall.job().state, hall.job().restarts) == (JobState.WAITING, 0)
    hall.obey(hall.decide())
    assert (hall.job().state, place(hall).site) == (JobState.RUNNING, "zurich")


@pytest.mark.parametrize("want", ["resume", "later"])
def test_it_waits_with_a_reason_until_it_is_tried_there_again_in_time_or_at_a_persons_word(want: str) -> None:
    hall = a_job_that_could_not_move()
    hall.read("zurich/r1-n1", "node_up", 0.0)
    assert kinds(hall.decide()) == []
    (verdict,) = hall.job().verdicts
    assert (verdict.rule, verdict.subject) == ("sites.fetch", "oslo")
    said = explain(hall.snapshot(), hall.policy, "r1/train").say
    assert said.startswith(
        "r1/train waits for its checkpoint to come to oslo: it lies at zurich, and could not"
    )
    hall.wait(601.0 if want == "later" else 1.0)
    if want == "resume":
        hall.asked("r1/train", "pause")
        hall.decide()
        hall.asked("r1/train", "resume")
    (begins,) = hall.decide().actions
    assert begins.place is not None
    assert begins.place.site == "oslo"


def test_under_pressure_nobody_moves_to_where_its_checkpoint_just_did_not_come() -> None:
    hall = a_job_that_could_not_move()
    anywhere = Rung(kind=RungKind.MIGRATE, to="any")
    hall.obey(hall.decide())
    assert choose_elsewhere(hall.snapshot(), hall.policy, hall.job(), anywhere) is None
    hall.wait(601.0)
    assert choose_elsewhere(hall.snapshot(), hall.policy, hall.job(), anywhere) is not None


def test_who_is_tried_again_later_says_when_and_after_what() -> None:
    hall = a_job_that_could_not_move()
    (again,) = hall.decide().actions
    hall.failed(again, "the checkpoint at zurich cannot be read", unreached=True)
    assert kinds(hall.decide()) == []
    said = explain(hall.snapshot(), hall.policy, "r1/train").say
    assert said.startswith(
        "r1/train waits: tried again in 10 s, after the checkpoint at zurich cannot be read"
    )
