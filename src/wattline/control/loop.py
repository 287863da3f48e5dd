"""The loop: look, decide, write it down, act. The live facility and the twin run this very function."""

from __future__ import annotations

from wattline.control.ports import Journal, World
from wattline.policy import decide
from wattline.spec.policy import Policy
from wattline.state import Decision, Snapshot, State


def step(world: World, state: State, policy: Policy, journal: Journal) -> Decision:
    """One turn. The journal comes before the act, so a crash between the two can be explained and resumed."""
    events = world.events()
    state.fold(events)
    decision = decide(Snapshot(state, world.now()), policy)
    journal.append(events, state.digest(), decision)
    state.settle(decision)
    for action in decision.actions:
        world.apply(action)
    return decision
