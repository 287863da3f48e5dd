"""A canary for a share of nodes, through a world that answers badly: the journal leads to the same again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from building import MONDAY, a_facility, a_policy, a_site, adopted, assert_ledger_is_true
from wattline.control import Deciders, Documents, refold, replay, step
from wattline.control.arms import ArmsSeen
from wattline.spec import Policy
from wattline.state import Adopted, Decision, Snapshot, State, dump_state
from wattline.store import MemoryJournal
from wattline.store.steps import StepJournal, read_steps

FACILITY = a_facility(
    a_site("zurich", racks=3, nodes=1, rack_cap_watts=2600.0, feeds_watts=(5000.0,), telemetry="emulated"),
    a_site("oslo", racks=2, nodes=1, feeds_watts=(5000.0,)),
)
POLICIES = {
    "p": a_policy(under_pressure=[{"cap_power": "60%"}, {"pause": "60s"}]),
    "new": a_policy(
        policy="new",
        thresholds={"power_margin": "10%", "settle": "5s"},
        sharing={"patience": "1min"},
        under_pressure=[{"pause": "60s"}],
    ),
}
DOCUMENTS = Documents(facility=lambda _: FACILITY, policy=POLICIES.__getitem__)
ON = ("zurich/r2", "oslo/r1")


def begins(at: float, **changes: Any) -> Adopted:
    return msgspec.structs.replace(
        adopted(at), canary="new", canary_sha256="new", canary_on=ON, canary_share=0.4, **changes
    )


def live(world: Any, turns: int = 300) -> tuple[State, MemoryJournal, ArmsSeen]:
    """The candidate comes after a while and goes again."""
    journal, state, seen = MemoryJournal(), State(FACILITY), ArmsSeen()
    steps, deciders = StepJournal(journal), Deciders(DOCUMENTS)

    def decide(snapshot: Snapshot, _policy: Policy) -> Decision:
        decision = deciders.decide(state, snapshot.at)
        assert not deciders.failure
        if "canary_sha256" in state.adopted:
            seen.note(state, deciders.split(state), (), decision)
        return decision

    for turn in range(turns):
        if turn in (20, 200):
            world._tell(begins(world.now()) if turn == 20 else adopted(world.now()))
        decision = step(world, state, POLICIES["p"], steps, decide)
        assert_ledger_is_true(state)
        for number, resource in enumerate(state.plant.resources):
            assert resource.idle + state.ledger.claimed[number] <= resource.cap, resource
        world.sleep_until(decision.revisit_at)
    return state, journal, seen


@pytest.mark.parametrize("seed", range(4))
def test_the_journal_of_a_canary_replays_exactly(seed: int, a_scripted_world: Callable[..., Any]) -> None:
    state, journal, _ = live(a_scripted_world(seed))
    records = list(read_steps(journal))
    assert list(replay(records, DOCUMENTS)) == []
    folded = refold(None, records, DOCUMENTS)
    assert folded is not None
    assert dump_state(folded) == dump_state(state)


def test_both_decide_and_each_action_says_whose_it_is(a_scripted_world: Callable[..., Any]) -> None:
    by: dict[str, set[str]] = {"": set(), "new": set()}
    for seed in range(4):
        _, journal, _ = live(a_scripted_world(seed))
        on, seen = False, set[str]()  # what is asked again was decided before
        for _, record in read_steps(journal):
            for event in record.events:
                on = bool(event.canary_on) if isinstance(event, Adopted) else on
            for action in record.decision.actions:
                if on and action.place is not None and action.id not in seen:
                    by[action.by] |= {node.rpartition("-")[0] for node, _ in action.place.nodes}
                assert on or not action.by or action.id in seen
                seen.add(action.id)
    assert by["new"] == set(ON)
    assert not by[""] & set(ON)


def test_a_candidate_that_fails_decides_nothing_and_the_replay_knows_it(
    a_scripted_world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Decision:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(sys.modules["wattline.control.replay"], "decide_apart", fails)
    journal, state, deciders = MemoryJournal(), State(FACILITY), Deciders(DOCUMENTS)
    world = a_scripted_world(1)
    world._tell(begins(MONDAY))
    for _ in range(30):
        decision = step(
            world,
            state,
            POLICIES["p"],
            StepJournal(journal),
            lambda snapshot, _: deciders.decide(state, snapshot.at),
        )
        world.sleep_until(decision.revisit_at)
    assert deciders.failure == "it failed: ZeroDivisionError: by nothing"
    assert any(record.decision.actions for _, record in read_steps(journal))
    assert list(replay(read_steps(journal), DOCUMENTS)) == []
