"""What may be asked of which jobs, and what is said where it may not."""

from __future__ import annotations

import pytest

from building import Hall, a_job, a_link, a_site, a_world
from wattline.errors import RefusedError, UsageError
from wattline.plane.finding import UnknownError
from wattline.plane.steering import ask_of, asking, describe_steered, say_steered
from wattline.state import SiteStood, Standing, State


@pytest.fixture
def hall() -> Hall:
    hall = a_world(a_site("zurich"), a_site("oslo"), links=[a_link(("zurich", "oslo"))])
    hall.run(a_job("r1/train", checkpoints=True), a_job("r1/plain"))
    return hall


def test_each_word_goes_to_those_that_can_heed_it(hall: Hall) -> None:
    assert [job.id for job in ask_of(hall.state, "r1", "cancel")[1]] == ["r1/train", "r1/plain"]
    assert [job.id for job in ask_of(hall.state, "r1", "migrate")[1]] == ["r1/train"]
    hall.asked("r1/train", "pause")
    assert [job.id for job in ask_of(hall.state, "r1", "resume")[1]] == ["r1/train"]
    assert [job.id for job in ask_of(hall.state, "r1", "pause")[1]] == ["r1/plain"]


@pytest.mark.parametrize(
    ("name", "want", "to", "said"),
    [
        ("r1/plain", "migrate", None, "keeps no checkpoints"),
        ("r1", "resume", None, "is not paused"),
        ("r1/train", "migrate", "zurich", "already"),
    ],
)
def test_where_no_job_can_the_reason_is_told(
    hall: Hall, name: str, want: str, to: str | None, said: str
) -> None:
    here = hall.job().place
    assert here is not None
    with pytest.raises(RefusedError, match=said):
        ask_of(hall.state, name, want, to=here.site if to else None)


def test_names_that_are_not_there_are_told_with_those_that_are(hall: Hall) -> None:
    with pytest.raises(UnknownError, match="site 'olso'"):
        ask_of(hall.state, "r1", "migrate", to="olso")
    with pytest.raises(UnknownError, match="job 'r2'"):
        ask_of(hall.state, "r2", "cancel")
    with pytest.raises(UsageError, match="'dance'"):
        ask_of(hall.state, "r1", "dance")


def test_a_word_names_who_said_it_and_says_what_follows(hall: Hall) -> None:
    run, jobs = ask_of(hall.state, "r1/train", "migrate")
    (word,) = asking(jobs, "migrate", at=1.0, actor="ada", to="oslo")
    assert (word.actor, word.job, word.want, word.to) == ("ada", "r1/train", "migrate", "oslo")
    assert say_steered(describe_steered(run, jobs, "migrate", "oslo")) == "r1/train moves to oslo"


def test_a_job_that_nobody_could_take_its_checkpoint_from_is_told_before_it_pauses(hall: Hall) -> None:
    asked = []

    def hands_over(_state: State, origin: str, to: str | None) -> bool:
        asked.append((origin, to))
        return False

    with pytest.raises(RefusedError, match="r1/train has a checkpoint that nobody could fetch: start"):
        ask_of(hall.state, "r1/train", "migrate", to="oslo", hands_over=hands_over)
    assert asked == [("zurich", "oslo")]
    assert ask_of(hall.state, "r1/train", "pause", hands_over=hands_over)


def test_a_job_does_not_set_out_for_a_site_that_no_link_leads_to() -> None:
    hall = a_world(a_site("zurich"), a_site("oslo", nodes=1, gpus=0), a_site("bern", nodes=1, gpus=0))
    hall.run(a_job("r1/train", checkpoints=True))
    with pytest.raises(RefusedError, match="no link of the facility joins zurich and oslo"):
        ask_of(hall.state, "r1", "migrate", to="oslo")


def test_a_job_does_not_set_out_for_a_site_that_takes_no_work(hall: Hall) -> None:
    say = "not heard for 15 s"
    stood = SiteStood(at=hall.at, site="oslo", standing=Standing.LOCAL_ONLY, epoch=1, agent="a", say=say)
    hall.fold(stood)
    with pytest.raises(RefusedError, match="cannot begin at oslo now: local_only, not heard for 15 s"):
        ask_of(hall.state, "r1/train", "migrate", to="oslo")
