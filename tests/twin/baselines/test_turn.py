"""What all baselines share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import Hall, a_job, a_policy, a_site, a_world, assert_ledger_is_true, kinds
from wattline.control import Decide
from wattline.spec import Locality, Priority
from wattline.state import Decision, Ending, JobState, Outcome
from wattline.twin.baselines import BASELINES

Take = Callable[[Hall, Decide], Decision]

every_baseline = pytest.mark.parametrize("decide", BASELINES.values(), ids=BASELINES.keys())


@every_baseline
def test_what_could_never_fit_is_refused_at_once_even_behind_others(take: Take, decide: Decide) -> None:
    hall = a_world(a_site(nodes=2))
    hall.submit(a_job("a/train", gpus=16))
    take(hall, decide)
    hall.submit(a_job("b/train", gpus=16))
    hall.submit(a_job("c/train", gpus=17))
    decision = take(hall, decide)
    assert kinds(decision) == [("refuse", "c/train")]
    (verdict,) = decision.verdicts
    assert (verdict.job, verdict.outcome, verdict.rule) == ("c/train", Outcome.REFUSE, "gpus")
    assert verdict.numbers == {"asked_gpus": 17.0, "most_gpus": 16.0}
    assert hall.job("c/train").state is JobState.REFUSED


@every_baseline
@pytest.mark.parametrize(
    "asked",
    [
        {"gpus": 9, "locality": Locality.NODE},
        {"gpus": 1, "gpu_models": ("H100",)},
        {"gpus": 1, "residency": ("us",)},
        {"gpus": 1, "cpus": 65.0},
    ],
    ids=["one node", "another device", "another region", "more CPUs than a node has"],
)
def test_what_no_pool_may_hold_is_refused(take: Take, decide: Decide, asked: dict[str, object]) -> None:
    hall = a_world(a_site(nodes=2))
    hall.submit(a_job("a/train", **asked))
    assert kinds(take(hall, decide)) == [("refuse", "a/train")]


@every_baseline
def test_what_nobody_answered_is_asked_again(decide: Decide) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("a/train", gpus=1))
    first = decide(hall.snapshot(), hall.policy)
    hall.state.settle(first)
    assert first.revisit_at == hall.at + hall.policy.thresholds.acknowledge_within
    hall.wait(hall.policy.thresholds.acknowledge_within)
    assert decide(hall.snapshot(), hall.policy).actions == first.actions


@every_baseline
def test_a_job_that_was_lost_waits_longer_each_time(decide: Decide, take: Take) -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(thresholds={"restart_backoff": "60s"}))
    hall.submit(a_job("a/train", gpus=1))
    take(hall, decide)
    for wait_seconds in (60.0, 120.0):
        hall.ended("a/train", Ending.LOST)
        hall.wait(wait_seconds - 60.0)
        assert kinds(take(hall, decide)) == []
        hall.wait(60.0)
        assert kinds(take(hall, decide)) == [("start", "a/train")]


@every_baseline
def test_the_more_urgent_come_first_then_those_who_came_first(take: Take, decide: Decide) -> None:
    hall = a_world(a_site(nodes=1, gpus=1))
    hall.submit(a_job("b/train", gpus=1))
    hall.wait(60)
    hall.submit(a_job("a/train", gpus=1), a_job("c/train", gpus=1, priority=Priority.URGENT))
    started = []
    for _ in range(3):
        (action,) = take(hall, decide).actions
        started.append(action.job)
        hall.ended(action.job)
        hall.wait(60)
    assert started == ["c/train", "b/train", "a/train"]


@every_baseline
@given(
    asked=st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from([1.0, 20.0, 40.0]), st.sampled_from(["any", "node"])),
        max_size=12,
    ),
    ending=st.lists(st.integers(0, 11), max_size=12),
)
def test_nobody_gets_what_is_not_there(
    decide: Decide, asked: list[tuple[int, float, str]], ending: list[int]
) -> None:
    hall = a_world(a_site(nodes=2, gpus=4), a_site("geneva", nodes=1))
    for number, (gpus, cpus, locality) in enumerate(asked):
        hall.submit(
            a_job(f"j{number}/train", gpus=gpus, cpus=cpus, locality=Locality(locality), checkpoints=True)
        )
    for number in (-1, *ending):
        if hall.state.jobs.get(f"j{number}/train") and f"j{number}/train" in hall.state.holding:
            hall.ended(f"j{number}/train")
        hall.wait(60.0)
        decision = decide(hall.snapshot(), hall.policy)
        hall.state.settle(decision)
        hall.obey(decision)
        assert_ledger_is_true(hall.state)


@every_baseline
def test_nothing_to_do_means_no_next_look(take: Take, decide: Decide) -> None:
    hall = a_world(a_site(nodes=1))
    assert take(hall, decide) == Decision(at=hall.at)
