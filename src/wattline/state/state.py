"""What is true now: folded from what the world said, and from what was decided."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wattline.errors import RefusedError
from wattline.facility import Facility
from wattline.state.action import Decision
from wattline.state.agents import AGENT_FOLDS
from wattline.state.attempts import ATTEMPT_FOLDS
from wattline.state.event import Event
from wattline.state.folding import FOLDS
from wattline.state.job import JobState
from wattline.state.resting import NodeMode
from wattline.state.settling import settle_action
from wattline.state.tables import Tables
from wattline.state.verdict import Verdict

EVENT_FOLDS = {**FOLDS, **ATTEMPT_FOLDS, **AGENT_FOLDS}


class State(Tables):
    """Changed only through `fold` and `settle`; everyone else reads a Snapshot of it."""

    def rebase(self, facility: Facility) -> None:
        """Move to another facility. Only between jobs: a claim means nothing elsewhere."""
        if self.holding:
            raise RefusedError(
                f"facility {facility.name}: {len(self.holding)} jobs still hold claims on "
                f"{self.plant.facility.name}",
                hint="let them end, or resume with the facility they run on",
            )
        for subject, quantity in list(self.readings):
            self.forget_reading(subject, quantity)
        for job_id in list(self.reservations):
            self.put_reservation(job_id, None)
        rests = self.leave_facility()
        for node in list(self.reclaims):
            self.put_reclaim(node, None)
        self.build_on(facility)
        for rest in rests:  # what slept still does, and so may whatever has not answered
            if rest.node in self.plant.node_number:
                is_awake = rest.mode is NodeMode.AWAKE
                mode = rest.mode if is_awake else NodeMode.ASLEEP
                self.put_rest(msgspec.structs.replace(rest, mode=mode))
        self.stuck.clear()
        self.derived.clear()
        self.version += 1

    def fold(self, events: Iterable[Event]) -> None:
        """Let each event change what it changes; late and repeated ones change nothing."""
        for event in events:
            self.has_news = True
            if event.at > self.at:
                self.at = event.at
            EVENT_FOLDS[type(event)](self, event)
        self.version += 1

    def settle(self, decision: Decision) -> None:
        """Take what was decided as promised: claims are held from here on.

        A turn in which nothing happened and nothing was decided is not written down; it must change nothing.
        """
        if decision.is_idle and not self.has_news:
            return
        self.has_news = False
        self.at = max(self.at, decision.at)
        self.decided_at = decision.at
        self.restless.clear()
        self.changed.clear()
        self.newcomers.clear()
        self.ledger.rest()
        self.conditions.touched.clear()
        for action in decision.actions:
            settle_action(self, action, decision.at)
        told: dict[str, list[Verdict]] = {}
        for verdict in decision.verdicts:
            told.setdefault(verdict.job, []).append(verdict)
        for job_id, verdicts in told.items():
            self.note_verdicts(job_id, tuple(verdicts))
        if decision.restless:
            self.restless.update(dict.fromkeys(decision.restless))
        for job_id in decision.eased:
            self.put(msgspec.structs.replace(self.jobs[job_id], clear_since=decision.at))
        for job_id in decision.pressed:
            self.put(msgspec.structs.replace(self.jobs[job_id], clear_since=None))
        for job_id in decision.unsure:
            self.stuck.discard(self.jobs[job_id].remainder.shape)
        if decision.stuck:
            self.stuck.update([self.jobs[job_id].remainder.shape for job_id in decision.stuck])
        for job_id in decision.given_up:
            self.put_reservation(job_id, None)
        for reservation in decision.reservations:
            if (
                self.jobs[reservation.job].state is JobState.WAITING
            ):  # it may have found another place meanwhile
                self.put_reservation(reservation.job, reservation)
        self.doubted_seconds.clear()
        self.version += 1
