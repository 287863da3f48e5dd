from __future__ import annotations

from collections.abc import Callable

from building import Hall, a_job, a_site, a_world, kinds
from wattline.control import Decide
from wattline.state import AttemptEnded, Decision, Ending, JobState, Place, Usage
from wattline.twin.baselines import decide_tiresias
from wattline.twin.baselines.tiresias import DEMOTED_GPU_SECONDS, ROUND_SECONDS

Take = Callable[[Hall, Decide], Decision]

SHARE_SECONDS = DEMOTED_GPU_SECONDS / 8  # how long eight GPUs are kept before others come first


def saved_and_left(hall: Hall, job: str) -> None:
    """A pause as the facility reports it, with what the attempt used."""
    now = hall.job(job)
    assert now.started_at is not None
    gpu_hours = now.request.gpus * (hall.at - now.started_at) / 3600.0
    hall.fold(
        AttemptEnded(
            at=hall.at, job=job, attempt=now.attempt, ending=Ending.PAUSED, usage=Usage(gpu_hours=gpu_hours)
        )
    )


def decide(hall: Hall) -> Decision:
    decision = decide_tiresias(hall.snapshot(), hall.policy)
    hall.state.settle(decision)
    return decision


def test_between_rounds_nothing_starts(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.wait(1)
    hall.submit(a_job("a/train", gpus=1))
    decision = take(hall, decide_tiresias)
    assert kinds(decision) == []
    assert decision.revisit_at == hall.at - 1 + ROUND_SECONDS
    hall.wait(ROUND_SECONDS - 1)
    assert kinds(take(hall, decide_tiresias)) == [("start", "a/train")]


def test_whoever_has_had_its_share_makes_way_and_comes_back(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("old/train", gpus=8, checkpoints=True))
    take(hall, decide_tiresias)
    hall.wait(ROUND_SECONDS)
    hall.submit(a_job("new/train", gpus=8, checkpoints=True))
    hall.wait(SHARE_SECONDS - 2 * ROUND_SECONDS)
    assert kinds(decide(hall)) == []
    hall.wait(ROUND_SECONDS)
    assert kinds(decide(hall)) == [("pause", "old/train")]
    assert kinds(decide(hall)) == []  # its GPUs are not free yet
    saved_and_left(hall, "old/train")
    assert kinds(take(hall, decide_tiresias)) == [("start", "new/train")]
    hall.wait(ROUND_SECONDS)
    assert kinds(take(hall, decide_tiresias)) == []
    hall.ended("new/train")
    hall.wait(ROUND_SECONDS)
    assert kinds(take(hall, decide_tiresias)) == [("resume", "old/train")]


def test_service_counts_over_all_attempts(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("old/train", gpus=8, checkpoints=True))
    take(hall, decide_tiresias)
    hall.wait(SHARE_SECONDS)
    saved_and_left(hall, "old/train")
    hall.submit(a_job("new/train", gpus=8, checkpoints=True))
    assert kinds(take(hall, decide_tiresias)) == [("start", "new/train")]


def test_among_those_who_have_not_had_their_share_the_first_to_come_goes_first(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("a/train", gpus=8, checkpoints=True))
    take(hall, decide_tiresias)
    hall.wait(ROUND_SECONDS)
    hall.submit(a_job("b/train", gpus=1, checkpoints=True))
    assert kinds(take(hall, decide_tiresias)) == []


def test_who_does_not_fit_holds_nobody_up(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("a/train", gpus=6))
    hall.submit(a_job("b/train", gpus=4))
    hall.submit(a_job("c/train", gpus=2))
    assert kinds(take(hall, decide_tiresias)) == [("start", "a/train"), ("start", "c/train")]


def test_a_job_without_checkpoints_is_never_paused(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("old/train", gpus=8))
    take(hall, decide_tiresias)
    hall.wait(SHARE_SECONDS)
    hall.submit(a_job("new/train", gpus=8))
    assert kinds(take(hall, decide_tiresias)) == []


def test_every_job_goes_to_the_roomiest_node(take: Take) -> None:
    hall = a_world(a_site(nodes=2, gpus=4))
    hall.submit(a_job("a/train", gpus=1), a_job("b/train", gpus=2), a_job("c/train", gpus=4))
    places = [action.place for action in take(hall, decide_tiresias).actions]
    assert places == [
        Place("zurich", (("zurich/r1-n1", 1),)),
        Place("zurich", (("zurich/r1-n2", 2),)),
        Place("zurich", (("zurich/r1-n1", 3), ("zurich/r1-n2", 1))),
    ]


def test_gpus_that_were_given_up_late_are_used_within_the_round(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("old/train", gpus=8, checkpoints=True))
    take(hall, decide_tiresias)
    hall.wait(SHARE_SECONDS)
    hall.submit(a_job("new/train", gpus=8))
    assert kinds(decide(hall)) == [("pause", "old/train")]
    hall.wait(5)
    saved_and_left(hall, "old/train")
    assert hall.job("old/train").state is JobState.PAUSED
    assert kinds(take(hall, decide_tiresias)) == [("start", "new/train")]
