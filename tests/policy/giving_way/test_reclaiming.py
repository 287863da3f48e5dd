"""A machine is taken back: who saves, who is lost, and where they go on."""

from __future__ import annotations

from typing import Any

from building import Hall, a_cloud, a_job, a_link, a_site, a_world, kinds
from wattline.state import (
    Ending,
    JobState,
    NodeGivenBack,
    NodeReclaimed,
    Outcome,
    Snapshot,
    dump_state,
    load_state,
)

LINK = a_link(("zurich", "cloud"), usd_per_gigabyte=0.0)
NODE = "cloud/r1-n1"


def rented(**changes: Any) -> Hall:
    """A job that no hall of ours could take runs on the first of two machines."""
    hall = a_world(a_site(nodes=1, gpus=4), a_cloud(reclaims_per_gpu_hour=0.1), links=[LINK])
    asked = {"gpus": 8, "burst": True, "checkpoints": True, "max_duration_seconds": 36000.0}
    hall.run(a_job(**(asked | changes)))
    assert hall.job().place is not None
    assert hall.job().place.nodes == ((NODE, 8),)  # type: ignore[union-attr]
    return hall


def reclaim(hall: Hall, notice_seconds: float = 120.0) -> None:
    hall.fold(NodeReclaimed(at=hall.at, node=NODE, notice_seconds=notice_seconds))


def test_a_job_that_saves_leaves_at_once_and_goes_on_elsewhere() -> None:
    hall = rented()
    hall.wait(60)
    reclaim(hall)
    decision = hall.decide()
    assert kinds(decision) == [("pause", "r1/train")]
    (verdict,) = decision.verdicts
    assert (verdict.rule, verdict.subject, verdict.outcome) == ("cloud.reclaim", NODE, Outcome.PRESS)
    assert verdict.numbers == {"notice_seconds": 120.0}
    hall.wait(10)
    hall.saved("r1/train", site="cloud")
    hall.obey(decision)
    begun = hall.decide()
    assert kinds(begun) == [("start", "r1/train")]
    (place,) = [action.place for action in begun.actions]
    assert place is not None
    assert place.nodes == (("cloud/r1-n2", 8),)
    assert hall.job().attempt == 2


def test_a_machine_that_is_taken_back_takes_nobody_until_it_is_given_back() -> None:
    hall = rented()
    reclaim(hall)
    hall.obey(hall.decide())
    hall.obey(hall.decide())
    hall.submit(a_job("r2/train", gpus=8, burst=True))
    assert kinds(hall.decide()) == []
    hall.wait(600)
    hall.fold(NodeGivenBack(at=hall.at, node=NODE))
    assert kinds(hall.decide()) == [("start", "r2/train")]


def test_a_job_that_cannot_save_works_on_until_the_machine_is_gone() -> None:
    hall = rented(checkpoints=False)
    reclaim(hall)
    decision = hall.decide()
    assert kinds(decision) == []
    assert decision.revisit_at == hall.at + 120.0
    hall.wait(120)
    stop = hall.decide()
    assert kinds(stop) == [("stop", "r1/train")]
    hall.obey(stop)
    assert hall.job().ending is Ending.LOST
    assert hall.job().state is JobState.WAITING
    assert hall.job().restarts == 0
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_a_save_that_takes_longer_than_the_notice_ends_with_the_machine() -> None:
    hall = rented()
    reclaim(hall, 30.0)
    hall.decide()
    hall.wait(30)
    stop = hall.decide()
    assert kinds(stop) == [("stop", "r1/train")]
    hall.obey(stop)
    assert hall.job().state is JobState.WAITING


def test_a_pause_that_failed_is_asked_for_again_while_there_is_time() -> None:
    hall = rented()
    hall.wait(5)
    reclaim(hall)
    (pause,) = hall.decide().actions
    hall.wait(5)
    hall.failed(pause)
    assert kinds(hall.decide()) == []
    hall.wait(30)
    assert kinds(hall.decide()) == [("pause", "r1/train")]


def test_the_same_word_twice_and_an_old_word_change_nothing() -> None:
    hall = rented()
    hall.wait(100)
    reclaim(hall)
    before = dump_state(hall.state)
    reclaim(hall)
    hall.fold(NodeGivenBack(at=hall.at - 50, node=NODE))
    assert dump_state(hall.state) == before


def test_a_second_notice_does_not_make_a_machine_stay_longer() -> None:
    hall = rented()
    reclaim(hall, 60.0)
    hall.wait(30)
    reclaim(hall, 120.0)
    assert hall.state.reclaims[NODE].leaves_at == hall.at + 30.0


def test_a_state_that_was_kept_still_knows_what_was_taken_back() -> None:
    hall = rented()
    reclaim(hall)
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert loaded.digest() == hall.state.digest()
    node = hall.state.plant.node_number[NODE]
    assert Snapshot(loaded, hall.at).gpus_free(node) == 0
    assert loaded.ledger.down == hall.state.ledger.down


def test_a_node_that_was_said_to_be_off_stays_off_when_it_is_given_back() -> None:
    hall = rented()
    reclaim(hall)
    hall.wait(1)
    hall.read(NODE, "node_up", 0.0)
    hall.wait(1)
    hall.fold(NodeGivenBack(at=hall.at, node=NODE))
    assert hall.snapshot().is_down(hall.state.plant.node_number[NODE])
