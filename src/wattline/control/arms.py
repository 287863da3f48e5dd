"""Arms: how do the two sides of a canary fare, and is it time to stop it?

Counted from the steps of the loop, each side by the nodes that jobs hold: who waits counts once it starts or
is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from wattline.policy.apart import Split
from wattline.state import (
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    Decision,
    Ending,
    Event,
    Measured,
    Place,
    ResourceKind,
    State,
)
from wattline.units import SECONDS_PER_HOUR

# So many refusals and not one start: it refuses everything.
_ENOUGH_REFUSED = 3


class ArmFigures(msgspec.Struct, kw_only=True):
    """What one side did. Two processes that conducted one after the other add up."""

    gpus: int = 0
    started: int = 0  # jobs, for the first time
    refused: int = 0
    waited_seconds: float = 0.0  # of those that started, summed
    longest_wait_seconds: float = 0.0
    useful_gpu_hours: float = 0.0
    lost_gpu_hours: float = 0.0  # since the last checkpoint of attempts that did not succeed
    violations: int = 0  # how often a rack came to draw more than its cap

    @property
    def mean_wait_seconds(self) -> float | None:
        return self.waited_seconds / self.started if self.started else None


class ArmsSeen(msgspec.Struct, kw_only=True):
    in_force: ArmFigures = msgspec.field(default_factory=ArmFigures)
    candidate: ArmFigures = msgspec.field(default_factory=ArmFigures)
    over: set[str] = msgspec.field(default_factory=set)  # racks above their cap now

    def note(self, state: State, split: Split, events: Sequence[Event], decision: Decision) -> None:
        """One step, after its events were folded and before its decision is settled."""
        spots = state.plant.spots
        self.candidate.gpus = sum(spots[node].node.gpus for node in split.nodes)
        self.in_force.gpus = sum(spots[node].node.gpus for node in split.others)
        for event in events:
            if isinstance(event, AttemptStarted):
                self._started(state, split, event)
            elif isinstance(event, AttemptEnded):
                self._ended(state, split, event)
            elif isinstance(event, Measured):
                self._measured(state, split, event)
        for action in decision.actions:
            if action.kind is ActionKind.REFUSE:
                (self.candidate if action.by else self.in_force).refused += 1

    def why_stop(self) -> str:
        """What speaks against going on; empty where nothing does."""
        theirs = self.candidate
        if theirs.violations:
            return "a rack of its share drew more than its cap"
        if theirs.refused >= _ENOUGH_REFUSED and not theirs.started:
            return f"it refuses everything: {theirs.refused} jobs, and not one started"
        return ""

    def _side(self, state: State, split: Split, place: Place) -> ArmFigures:
        numbers = state.plant.node_number
        is_theirs = all(numbers[name] in split.nodes for name, _ in place.nodes)
        return self.candidate if is_theirs else self.in_force

    def _started(self, state: State, split: Split, event: AttemptStarted) -> None:
        job = state.jobs.get(event.job)
        if job is None or job.place is None or job.attempt != event.attempt:
            return
        if job.first_started_at != event.at:
            return  # it goes on
        side, waited = self._side(state, split, job.place), max(0.0, event.at - job.submitted_at)
        side.started += 1
        side.waited_seconds += waited
        side.longest_wait_seconds = max(side.longest_wait_seconds, waited)

    def _ended(self, state: State, split: Split, event: AttemptEnded) -> None:
        job = state.jobs.get(event.job)
        if job is None or not job.past or job.past[-1].attempt != event.attempt:
            return
        past = job.past[-1]
        if past.ended_at != event.at or past.began_at is None or past.place is None:
            return
        held_seconds, kept_at = past.ended_at - past.began_at, max(past.began_at, past.kept_at or 0.0)
        lost_seconds = 0.0 if past.ending is Ending.SUCCEEDED else max(0.0, past.ended_at - kept_at)
        side, hours = self._side(state, split, past.place), past.place.gpus / SECONDS_PER_HOUR
        side.useful_gpu_hours += hours * (held_seconds - lost_seconds)
        side.lost_gpu_hours += hours * lost_seconds

    def _measured(self, state: State, split: Split, event: Measured) -> None:
        plant, ledger = state.plant, state.ledger
        for subject, _, _ in event.readings:
            resource = plant.resource_number.get(subject)
            if resource is None or plant.kinds[resource] is not ResourceKind.RACK:
                continue
            if ledger.drawn_at[resource] is None or ledger.drawn[resource] <= ledger.caps[resource]:
                self.over.discard(subject)
            elif subject not in self.over:
                self.over.add(subject)
                theirs = any(plant.spots[node].rack.name == subject for node in split.nodes)
                (self.candidate if theirs else self.in_force).violations += 1
