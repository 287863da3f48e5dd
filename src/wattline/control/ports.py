"""What the loop needs of the outside; what implements these stands below and is wired in by the faces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from wattline.spec.policy import Policy
from wattline.state import Action, Decision, Event, Forecasted, State


class World(Protocol):
    """A facility, live or in software."""

    def now(self) -> float:
        """The time decisions are made at: the wall clock, or a virtual one."""
        ...

    def events(self) -> Sequence[Event]:
        """What happened since last asked, in order; never blocks."""
        ...

    def apply(self, action: Action) -> None:
        """Do it; idempotent by the action's id. Its outcome comes back as an event."""
        ...

    def sleep_until(self, at: float | None) -> None:
        """Until then, or until something happens."""
        ...


class Journal(Protocol):
    """Remembers a step before it is acted on, so that a crash can be explained."""

    def append(self, events: Sequence[Event], digest: Callable[[], str], decision: Decision) -> None:
        """`digest` works out that of the state: not for nothing, so only where it is kept."""
        ...


class Forecaster(Protocol):
    """Looks ahead: plays the queue through with the very decisions that the loop would take."""

    def forecast(self, state: State, policy: Policy, at: float) -> Forecasted | None:
        """When everything that waits will start; None where nothing does, or nothing can be told."""
        ...
