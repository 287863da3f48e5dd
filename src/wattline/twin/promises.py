"""Promises: how do SLOs stand on the steps of a run of the twin?

The same counting as of a journal: each step is shown after its events were folded and before its decision is
settled. A run of the twin forgets who has ended in the very step that says so, hence the state of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from wattline.control import Documents, Objectives, Standing, StepRecord, observe
from wattline.facility import Facility
from wattline.spec.policy import Policy
from wattline.spec.slo import Slo
from wattline.state import State


class Promises:
    """Hears every record of a run, in order."""

    def __init__(self, facility: Facility, slos: Sequence[Slo]) -> None:
        self._state, self._steps = State(facility), 0
        self._objectives = Objectives(slos)
        self._documents = Documents(facility=lambda _: facility, policy=_nobody_asks)

    def note(self, record: StepRecord) -> None:
        self._steps += 1
        observe(self._state, [(self._steps, record)], self._documents, self._objectives.note)

    def standings(self, at: float) -> list[Standing]:
        return self._objectives.standings(self._state, at)


def _nobody_asks(digest: str) -> Policy:
    raise LookupError(f"a run of the twin adopts nothing: {digest}")
