"""A candidate in shadow is asked at every turn, never acts, and never fails anybody but itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from building import MONDAY, a_facility, a_job, a_policy, a_site, adopted
from control import test_loop
from wattline.control import Canary, Sighting, encode_decision, step
from wattline.policy import decide
from wattline.spec import Policy
from wattline.state import Decision, RunSubmitted, Snapshot, State
from wattline.store import MemoryJournal
from wattline.store.steps import StepJournal, read_steps

NOBODY = a_policy(
    policy="nobody",
    rules=[{"name": "nobody", "when": "job.gpus >= 0", "say": "not today", "mode": "block"}],
)


def run_beside(world: Any, canary: Canary | None, turns: int = 400) -> list[bytes]:
    """A loop with a candidate in shadow; what it wrote down."""
    journal, state = MemoryJournal(), State(test_loop.FACILITY)
    steps = StepJournal(journal)

    def shadowed(snapshot: Snapshot, policy: Policy) -> Decision:
        decision = decide(snapshot, policy)
        if canary is not None:
            canary.watch(state, decision, policy)
        return decision

    for _ in range(turns):
        decision = step(world, state, test_loop.POLICY, steps, shadowed)
        world.sleep_until(decision.revisit_at)
    return [encode_decision(record.decision) for _, record in read_steps(journal)]


@pytest.mark.parametrize("seed", range(3))
def test_what_counts_is_decided_as_if_nobody_stood_beside_it(
    seed: int, a_scripted_world: Callable[..., Any]
) -> None:
    canary = Canary(test_loop.STRICT)
    alone = run_beside(a_scripted_world(seed), None)
    assert run_beside(a_scripted_world(seed), canary) == alone
    seen = canary.seen()
    assert seen.turns == 400
    assert seen.errors == 0
    assert seen.by_kind, "a margin of 40 % makes a difference"
    assert seen.seconds > 0


def test_a_candidate_that_would_refuse_everything_is_seen_to(a_scripted_world: Callable[..., Any]) -> None:
    canary = Canary(NOBODY)
    run_beside(a_scripted_world(1), canary)
    seen = canary.seen()
    assert seen.starts_nothing
    assert seen.done["refused"] == seen.waited > 0
    assert seen.by_rule["rule.nobody"] >= seen.waited


def test_errors_of_the_candidate_are_noted_and_the_turn_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    state = State(a_facility(a_site()))
    state.fold([adopted(MONDAY), RunSubmitted(at=MONDAY, run="r1", pipeline="p", jobs=(a_job(),))])
    canary, policy = Canary(NOBODY), a_policy()
    decided = decide(Snapshot(state, MONDAY), policy)

    def fail(*_: object) -> Decision:
        raise ZeroDivisionError("by nothing")

    with monkeypatch.context() as broken:
        broken.setattr("wattline.control.opinion.decide", fail)
        for _ in range(7):
            canary.watch(state, decided, policy)
    canary.watch(state, decided, policy)
    seen = canary.seen()
    assert (seen.turns, seen.errors, len(seen.first_errors)) == (8, 7, 5)
    assert seen.first_errors[0] == "ZeroDivisionError: by nothing"
    assert seen.by_kind == {"start → refuse": 1}, "it is asked again"


def test_what_two_processes_saw_adds_up() -> None:
    one = Sighting(turns=3, by_kind={"a": 1}, done={"started": 0}, waited=2, errors=1, first_errors=("x",))
    other = Sighting(
        turns=4, by_kind={"a": 1, "b": 2}, done={"started": 1}, waited=1, failed_rules={"r": "?"}
    )
    both = one.plus(other)
    assert (both.turns, both.waited, both.errors) == (7, 3, 1)
    assert both.by_kind == {"a": 2, "b": 2}
    assert (one.starts_nothing, both.starts_nothing) == (True, False)
    assert both.failed_rules == {"r": "?"}
