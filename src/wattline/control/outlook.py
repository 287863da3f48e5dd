"""Outlook: when is it time to look ahead again?

Every minute, and sooner when the queue has changed; never so often that looking ahead takes more than a small
share of the loop's time, whatever one forecast costs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from wattline.control.ports import Forecaster
from wattline.errors import WattlineError
from wattline.spec.policy import Policy
from wattline.state import (
    Adopted,
    Asked,
    AttemptEnded,
    AttemptStarted,
    Event,
    Forecasted,
    Noticed,
    RunSubmitted,
    State,
    dump_state,
    load_state,
)

_EVERY_SECONDS = 60.0
_MOST_OF_TIME = 0.05
# What changes who waits, or behind whom.
_STIRRING = (Adopted, RunSubmitted, AttemptStarted, AttemptEnded, Asked)


class Outlook:
    """Asks a forecaster on a period; the loop takes what it says in as an event like any other."""

    def __init__(
        self,
        forecaster: Forecaster,
        clock: Callable[[], float] = time.monotonic,
        learn: Callable[[Sequence[Event]], None] = lambda _: None,
    ) -> None:
        self._forecaster, self._clock, self._learn = forecaster, clock, learn
        self._due_at = -math.inf
        self._rests_until = -math.inf
        self._stirred = True

    def hear(self, events: Sequence[Event]) -> None:
        """Note whether the queue is another than the one that was last looked at; let who learns learn."""
        self._learn(events)
        self._stirred = self._stirred or any(isinstance(event, _STIRRING) for event in events)

    def look(self, state: State, policy: Policy, at: float) -> Forecasted | Noticed | None:
        """A new forecast where one is due and somebody waits."""
        began = self._clock()
        if began < self._rests_until or not (self._stirred or began >= self._due_at):
            return None
        found = look_ahead(self._forecaster, state, policy, at)
        ended = self._clock()
        self._stirred = False
        self._due_at = ended + _EVERY_SECONDS
        self._rests_until = ended + (ended - began) / _MOST_OF_TIME
        return found

    def look_at_newcomers(
        self, state: State, policy: Policy, events: Sequence[Event], at: float
    ) -> Forecasted | Noticed | None:
        """Where queues are bounded, a forecast with whoever these events submit, before they are let in."""
        if not policy.bounds_queues or not any(isinstance(event, RunSubmitted) for event in events):
            return None
        after = load_state(state.plant.facility, dump_state(state))
        after.fold(events)
        return look_ahead(self._forecaster, after, policy, at)


def look_ahead(
    forecaster: Forecaster, state: State, policy: Policy, at: float
) -> Forecasted | Noticed | None:
    """Ask for a forecast; training must not end because the future could not be played through."""
    try:
        return forecaster.forecast(state, policy, at)
    except (WattlineError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        say = f"the queue could not be forecast: {type(error).__name__}: {error}"
        return Noticed(at=at, subject="forecast", say=say)
