"""The loop: look, decide, write it down, act. The live facility and the twin run this very function."""

from __future__ import annotations

from collections.abc import Callable

from wattline.control.ports import Journal, World
from wattline.policy import decide as decide_by_policy
from wattline.spec.policy import Policy
from wattline.state import Decision, Snapshot, State

Decide = Callable[[Snapshot, Policy], Decision]


def step(
    world: World, state: State, policy: Policy, journal: Journal, decide: Decide = decide_by_policy
) -> Decision:
    """One turn. The journal comes before the act, so a crash between the two can be explained and resumed.

    `decide` is another only where policies that people run today are compared with this one.
    """
    events = world.events()
    state.fold(events)
    decision = decide(Snapshot(state, world.now()), policy)
    journal.append(events, state.digest, decision)
    state.settle(decision)
    for action in decision.actions:
        world.apply(action)
    return decision
