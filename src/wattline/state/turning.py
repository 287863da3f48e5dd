"""Turning: how does being asked to sleep or to wake, and the answer, change a node?"""

from __future__ import annotations

import msgspec

from wattline.state.action import Action, ActionKind
from wattline.state.event import NodeSlept, NodeWoke
from wattline.state.job import Flight
from wattline.state.resting import NodeMode, Rest
from wattline.state.tables import Tables

replace = msgspec.structs.replace


def turn(state: Tables, action: Action, at: float) -> None:
    """It was decided: a node that falls asleep gives no GPUs from here on, one that wakes draws its watts."""
    before = _rest(state, action.node)
    wakes = action.kind is ActionKind.WAKE
    state.put_flight(action.id, Flight(action, at))
    state.put_rest(
        replace(
            before,
            mode=NodeMode.WAKING if wakes else NodeMode.FALLING,
            since=at,
            turns=before.turns + 1,
            woken_at=at if wakes else before.woken_at,
        )
    )


def turned(state: Tables, event: NodeSlept | NodeWoke) -> None:
    """The answer to what was asked last; any other changes nothing."""
    flight = state.flights.get(event.action)
    kind = ActionKind.SLEEP if isinstance(event, NodeSlept) else ActionKind.WAKE
    if flight is None or flight.action.kind is not kind or flight.action.node != event.node:
        return
    state.put_flight(event.action, None)
    mode = NodeMode.ASLEEP if kind is ActionKind.SLEEP else NodeMode.AWAKE
    state.put_rest(replace(_rest(state, event.node), mode=mode, since=event.at, failed_at=None))


def turn_failed(state: Tables, action: Action, at: float) -> None:
    """It is as it was before it was asked."""
    before = _rest(state, action.node)
    if action.kind is ActionKind.WAKE:
        state.put_rest(replace(before, mode=NodeMode.ASLEEP, since=at, failed_at=at))
    else:
        state.put_rest(replace(before, mode=NodeMode.AWAKE, since=at))


def _rest(state: Tables, name: str) -> Rest:
    known = state.resting.rests.get(state.plant.node_number[name])
    return Rest(node=name, mode=NodeMode.AWAKE, since=0.0) if known is None else known
