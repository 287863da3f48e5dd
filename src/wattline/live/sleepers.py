"""Sleepers: how are nodes sent to sleep and woken where the facility is emulated?

A node falls asleep at once. Waking it takes what its site says, by the wall clock. Real nodes have nobody yet
who could do either: such an action fails, and says so.
"""

from __future__ import annotations

import math

from wattline.state import (
    Acknowledged,
    Action,
    ActionFailed,
    ActionKind,
    Event,
    NodeMode,
    NodeSlept,
    NodeWoke,
    State,
)
from wattline.telemetry import EmulatedFacility


class Sleepers:
    def __init__(self, state: State, emulated: EmulatedFacility) -> None:
        self._state, self._emulated = state, emulated
        self._waking: dict[str, tuple[float, str]] = {}  # by action: when, and which node
        for rest in state.resting.rests.values():  # what slept when the last process ended still does
            if rest.mode is not NodeMode.AWAKE:
                emulated.send_to_sleep(rest.node, asleep=True)

    @property
    def next_at(self) -> float:
        return min([at for at, _ in self._waking.values()], default=math.inf)

    def turn(self, action: Action, at: float) -> list[Event]:
        """Begin it, or say how it stands where it was asked before."""
        if action.id in self._waking:
            return [Acknowledged(at=at, action=action.id)]
        if action.kind is ActionKind.WAKE:
            sleep = self._state.plant.spots[self._state.plant.node_number[action.node]].site.sleep
            self._waking[action.id] = (at + (sleep.wake_seconds if sleep else 0.0), action.node)
            self._emulated.send_to_sleep(action.node, asleep=False)  # it draws while it wakes
            return [Acknowledged(at=at, action=action.id)]
        if self._emulated.send_to_sleep(action.node, asleep=True):
            return [NodeSlept(at=at, source="emulated", node=action.node, action=action.id)]
        say = "it runs something, or nobody can send it to sleep: its site is not emulated"
        return [ActionFailed(at=at, action=action.id, say=say)]

    def poll(self, at: float) -> list[Event]:
        """Nodes that woke, or did not."""
        found: list[Event] = []
        for action, (wakes_at, node) in list(self._waking.items()):
            if wakes_at > at:
                continue
            del self._waking[action]
            if self._emulated.send_to_sleep(node, asleep=False):
                found.append(NodeWoke(at=at, source="emulated", node=node, action=action))
            else:
                self._emulated.send_to_sleep(node, asleep=True)
                found.append(ActionFailed(at=at, action=action, say=f"{node} did not wake"))
        return found
