"""Sleeping: a twin whose nodes can be sent to sleep, and take their time to wake.

A node falls asleep at once. Waking it takes what its site says; it idles meanwhile, and takes no work. Where
a fault keeps its rack from waking, or it has no power, it fails after that time and sleeps on.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

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
from wattline.twin.outlooking import OutlookingWorld
from wattline.twin.world import TwinWorld


class SleepingWorld(TwinWorld):
    """Carries out `sleep` and `wake`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._wakings: list[tuple[float, int, str]] = []  # when, which node, for which action
        self._turned: dict[str, Event] = {}  # by node: what its last turn came to
        self._slept_at: dict[int, float] = {}
        self.asleep_node_seconds = 0.0
        self.wakes = self.failed_wakes = 0

    def apply(self, action: Action) -> None:
        if not action.node:
            super().apply(action)
            return
        told = self._turned.get(action.node)
        if isinstance(told, NodeSlept | NodeWoke | ActionFailed) and told.action == action.id:
            self._pending.append(told)  # done before: the answer was lost
        elif any(waking[2] == action.id for waking in self._wakings):
            self._pending.append(Acknowledged(at=self._now, action=action.id))
        elif action.kind is ActionKind.SLEEP:
            self._sleep(action)
        else:
            node = self._plant.node_number[action.node]
            self.begin_waking(node, action.id, self._now + self._wake_seconds(node))

    def begin_waking(self, node: int, action: str, wakes_at: float) -> None:
        """It idles from now on; if it will not wake, it does so in vain."""
        self.wakes += 1
        self._count_asleep(node)
        self.truth.send_to_sleep(node, self._now, asleep=False)
        heapq.heappush(self._wakings, (wakes_at, node, action))

    def lay_to_sleep(self, node: int) -> bool:
        """Whether it sleeps now: not while something runs there."""
        if not self.truth.send_to_sleep(node, self._now, asleep=True):
            return False
        self._slept_at[node] = self._now
        return True

    def _sleep(self, action: Action) -> None:
        if self.lay_to_sleep(self._plant.node_number[action.node]):
            self._answer(action.node, NodeSlept(at=self._now, node=action.node, action=action.id))
        else:
            self._answer(
                action.node, ActionFailed(at=self._now, action=action.id, say="something runs there")
            )

    def _wake(self, node: int, action: str) -> None:
        name = self._plant.spots[node].node.name
        if self.truth.wakes(node) and not self.truth.is_off(node):
            self._answer(name, NodeWoke(at=self._now, node=name, action=action))
            return
        self.failed_wakes += 1
        self.lay_to_sleep(node)
        self._answer(name, ActionFailed(at=self._now, action=action, say=f"{name} did not wake"))

    def _answer(self, node: str, event: Event) -> None:
        self._turned[node] = event
        self._pending.append(event)

    def _next_at(self) -> float:
        due_at = self._wakings[0][0] if self._wakings else math.inf
        return min(super()._next_at(), due_at)

    def _happen(self) -> bool:
        heard = super()._happen()
        while self._wakings and self._wakings[0][0] <= self._now:
            _, node, action = heapq.heappop(self._wakings)
            self._wake(node, action)
            heard = True
        return heard

    @property
    def is_over(self) -> bool:
        """While somebody waits for a node that wakes, it is not."""
        return super().is_over and not (self._wakings and self.tally.waiting)

    def finish(self) -> None:
        super().finish()
        for node in list(self._slept_at):
            self._count_asleep(node)

    def _count_asleep(self, node: int) -> None:
        slept_at = self._slept_at.pop(node, None)
        if slept_at is not None:
            self.asleep_node_seconds += self._now - slept_at

    def _wake_seconds(self, node: int) -> float:
        sleep = self._plant.spots[node].site.sleep
        return 0.0 if sleep is None else sleep.wake_seconds

    def take_up_rest(self, state: State) -> None:
        """Begin with nodes as a state has them: asleep, or on their way."""
        for node, rest in state.resting.rests.items():
            if rest.mode is not NodeMode.AWAKE:
                self.lay_to_sleep(node)
        for action_id, flight in state.flights.items():
            if flight.action.kind is ActionKind.WAKE:
                node = self._plant.node_number[flight.action.node]
                rest = state.resting.rests[node]
                self.begin_waking(node, action_id, max(self._now, rest.since + self._wake_seconds(node)))
            elif flight.action.kind is ActionKind.SLEEP:
                self._answer(
                    flight.action.node,
                    NodeSlept(at=self._now, node=flight.action.node, action=action_id),
                )


class OutlookingSleepingWorld(OutlookingWorld, SleepingWorld):
    """Both: it also tells what the hours ahead are expected to be."""
