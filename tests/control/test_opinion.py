"""Another policy is asked about a state, and the state is as it was; what it says is what it would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from building import MONDAY, a_facility, a_job, a_policy, a_site, adopted
from control import test_loop
from wattline.control import Opinion, Sides, Tally, encode_decision, step, turns, until
from wattline.policy import decide
from wattline.spec import Policy
from wattline.state import Decision, RunSubmitted, Snapshot, State, dump_state
from wattline.store import MemoryJournal
from wattline.store.steps import StepJournal, read_steps

POLICY = a_policy(thresholds={"settle": "20s", "clear_for": "40s", "clear_margin": "5%"})
NO_BIG_ONES = a_policy(
    policy="small-only",
    rules=[{"name": "small", "when": "job.gpus > 4", "say": "at most four GPUs", "mode": "block"}],
)
HALF = a_policy(policy="half", thresholds={"power_margin": "60%"})


def submitted(*jobs: Any, at: float = MONDAY) -> list[RunSubmitted]:
    return [RunSubmitted(at=at, run=job.run, pipeline="p", jobs=(job,)) for job in jobs]


def standing(*jobs: Any) -> State:
    state = State(a_facility(a_site("zurich", nodes=1, rack_cap_watts=5000.0)))
    state.fold([adopted(MONDAY), *submitted(*jobs)])
    return state


def compare(state: State, one: Policy, other: Policy) -> Tally:
    tally = Tally()
    sides = Sides(Opinion(one).ask(state, MONDAY), Opinion(other).ask(state, MONDAY), one, other)
    tally.take(state, sides, 7)
    return tally


def test_asking_leaves_the_state_and_its_memory_as_they_were() -> None:
    state = standing(a_job("r1/train", gpus=8), a_job("r2/train", gpus=8))
    state.settle(decide(Snapshot(state, MONDAY), POLICY))
    before, stuck, derived = dump_state(state), set(state.stuck), dict(state.derived)
    assert stuck, "the second fits nowhere"
    opinion = Opinion(HALF)
    assert opinion.ask(state, MONDAY + 1).at == MONDAY + 1
    assert (dump_state(state), state.stuck, state.derived) == (before, stuck, derived)


def test_what_did_not_fit_under_one_policy_is_tried_under_the_other() -> None:
    state = standing(a_job("r1/train", gpus=4), a_job("r2/train", gpus=4))
    state.settle(decide(Snapshot(state, MONDAY), a_policy(thresholds={"power_margin": "50%"})))
    assert state.stuck, "there is power for one of them"
    assert [action.job for action in Opinion(POLICY).ask(state, MONDAY + 1).actions] == ["r2/train"]


def test_a_policy_that_fails_leaves_the_state_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    state = standing(a_job("r1/train", gpus=4))
    state.stuck.add(("a shape",))
    stuck = state.stuck

    def fail(*_: object) -> Decision:
        raise ValueError("broken")

    monkeypatch.setattr("wattline.control.opinion.decide", fail)
    with pytest.raises(ValueError, match="broken"):
        Opinion(POLICY).ask(state, MONDAY)
    assert state.stuck is stuck


def test_a_refusal_names_the_rule_that_makes_the_difference() -> None:
    tally = compare(standing(a_job("r1/train", gpus=8)), POLICY, NO_BIG_ONES)
    (found,) = tally.first
    assert (found.kind, found.rule, found.job, found.seq) == ("start → refuse", "rule.small", "r1/train", 7)
    assert found.decided.place == "zurich/r1-n1×8"
    assert "at most four GPUs" in found.say
    assert tally.by_rule == {"rule.small": 1}


def test_a_wait_says_what_the_other_policy_leaves_too_little_of() -> None:
    (found,) = compare(standing(a_job("r1/train", gpus=8)), POLICY, HALF).first
    assert (found.kind, found.rule) == ("start → refuse", "power.rack"), "it would never fit"
    state = standing(a_job("r1/train", gpus=4), a_job("r2/train", gpus=4))
    (found,) = compare(state, POLICY, a_policy(thresholds={"power_margin": "50%"})).first
    assert (found.job, found.kind, found.rule) == ("r2/train", "start → wait", "power.rack")


def test_the_same_policy_differs_in_nothing() -> None:
    state = standing(a_job("r1/train", gpus=8), a_job("r2/train", gpus=4))
    assert compare(state, POLICY, POLICY.model_copy()).count == 0


def test_who_still_waits_at_the_next_turn_is_not_told_again() -> None:
    state = standing(a_job("r1/train", gpus=8))
    tally, strict, lenient = Tally(), Opinion(NO_BIG_ONES), Opinion(POLICY)
    nothing = Decision(at=MONDAY)
    for at in (MONDAY, MONDAY + 1, MONDAY + 2):
        tally.take(state, Sides(nothing, lenient.ask(state, at), POLICY, POLICY))
        state.settle(Decision(at=at))
    assert tally.by_kind == {"wait → start": 1}
    tally.take(state, Sides(nothing, strict.ask(state, MONDAY + 3), POLICY, NO_BIG_ONES))
    assert tally.by_kind == {"wait → start": 1, "wait → refuse": 1}


RESERVING = a_policy(
    thresholds={"settle": "20s", "clear_for": "40s", "clear_margin": "5%"},
    sharing={"patience": "60s", "reservations": 2, "preempt": True, "least_runtime": "30s"},
)


@pytest.mark.parametrize("policy", [test_loop.POLICY, RESERVING], ids=["plain", "reserving"])
@pytest.mark.parametrize("seed", range(4))
def test_the_policy_that_conducts_has_no_other_opinion_than_its_own(
    seed: int, policy: Policy, a_scripted_world: Callable[..., Any]
) -> None:
    """The memory of an opinion is as good as the state's own."""
    state, world, opinion = State(test_loop.FACILITY), a_scripted_world(seed), Opinion(policy)

    def shadowed(snapshot: Snapshot, by: Policy) -> Decision:
        decision, would = decide(snapshot, by), opinion.ask(state, snapshot.at)
        assert would.actions == decision.actions, encode_decision(would)
        assert would.reservations == decision.reservations
        return decision

    for _ in range(600):
        decision = step(world, state, policy, StepJournal(MemoryJournal()), shadowed)
        world.sleep_until(decision.revisit_at)


@pytest.mark.parametrize("seed", range(3))
def test_a_recorded_history_asked_again_by_its_own_policy_differs_nowhere(
    seed: int, a_scripted_world: Callable[..., Any]
) -> None:
    journal = MemoryJournal()
    test_loop.live(a_scripted_world(seed), journal)
    opinion, tally, policy = Opinion(test_loop.POLICY), Tally(), test_loop.POLICY
    for turn in turns(None, read_steps(journal), test_loop.documents()):
        would = opinion.ask(turn.state, turn.record.decision.at)
        tally.take(turn.state, Sides(turn.record.decision, would, turn.in_force, policy), turn.seq)
    assert tally.count == 0


def test_only_what_was_recorded_up_to_a_time_is_folded(a_scripted_world: Callable[..., Any]) -> None:
    journal, state = MemoryJournal(), State(test_loop.FACILITY)
    steps = StepJournal(journal)
    world = a_scripted_world(1)
    for _ in range(50):
        decision = step(world, state, POLICY, steps)
        world.sleep_until(decision.revisit_at)
    everything = list(read_steps(journal))
    middle = everything[len(everything) // 2][1].decision.at
    seen = list(until(everything, middle))
    assert seen[-1][1].decision.at <= middle < everything[len(seen)][1].decision.at


def test_of_many_differences_the_first_are_told_and_all_are_counted() -> None:
    state = standing(*(a_job(f"r{number:02}/train", gpus=8) for number in range(40)))
    tally = Tally(asked={"r39/train"})
    sides = Sides(
        Opinion(POLICY).ask(state, MONDAY), Opinion(NO_BIG_ONES).ask(state, MONDAY), POLICY, NO_BIG_ONES
    )
    told = tally.take(state, sides)
    assert tally.count == len(tally.jobs) == 40
    assert tally.by_rule == {"rule.small": 40}
    assert len(tally.first) == 20
    assert [difference.job for difference in told] == [*(each.job for each in tally.first), "r39/train"]
    assert tally.take(state, sides) == []
