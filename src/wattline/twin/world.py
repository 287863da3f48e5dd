"""The world as software: the same port as the live facility, on a clock of its own.

Time jumps from one thing that happens to the next. What cannot change what is decided is told with the next
thing that can: that an attempt started, that one ended while nobody waits, that a job came of a kind that is
known to fit nowhere. All else is told at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from wattline.state import (
    BEGINNINGS,
    Acknowledged,
    Action,
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Ending,
    Event,
    Forgotten,
    JobRequest,
    Measured,
    Noticed,
    Plant,
    RunSubmitted,
)
from wattline.state.market import egress_usd, leaving_usd
from wattline.twin.agenda import Agenda
from wattline.twin.attempts import Attempt, Progress
from wattline.twin.billing import Billing
from wattline.twin.recorder import Recorder
from wattline.twin.renting import Renting
from wattline.twin.spreading import Rates, spread_speed
from wattline.twin.swings import SwingMeter
from wattline.twin.tally import Tally
from wattline.twin.timeline import Count, Timeline
from wattline.twin.transfers import Transfers
from wattline.twin.truth import Incident, IncidentKind, Truth
from wattline.twin.workload import Arrival


class Gauges(Protocol):
    """What tells the policy about the truth."""

    def read(self, at: float) -> list[tuple[str, str, float | None]]: ...

    def next_look_at(self, at: float) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """What beginning and leaving takes, in seconds; assumed."""

    start: float = 0.0  # a trace's run times have it in them
    restart: float = 60.0  # a process, its data and its checkpoint are there again
    save: float = 10.0


USUAL_OVERHEADS = Overheads()


class TwinWorld:
    """Implements control.World."""

    def __init__(
        self,
        plant: Plant,
        arrivals: Iterator[Arrival],
        truth: Truth,
        gauges: Gauges,
        *,
        begins_at: float,
        timeline: Timeline | None = None,
        rates: Rates | None = None,
        overheads: Overheads = USUAL_OVERHEADS,
        forget: bool = True,
        would_wait: Callable[[JobRequest], bool] = lambda _: False,
        rents: Renting | None = None,
    ) -> None:
        self.tally = Tally()
        self.truth = truth
        self._plant, self._gauges, self._rates, self._overheads = plant, gauges, rates, overheads
        self._now = begins_at
        self._arrivals = arrivals
        self._next_arrival = next(arrivals, None)
        self._pending: list[Event] = []
        self._riding: list[Event] = []  # told with the next thing that happens
        self._ended_runs: list[str] = []
        self._forget = forget
        self._would_wait = would_wait
        self._progress: dict[str, Progress] = {}
        self._attempts: dict[str, Attempt] = {}
        self._elastic_running = 0
        self._agenda = Agenda(self._attempts)
        self._transfers = Transfers(plant.links, truth.link_fraction)
        self._arriving: dict[str, tuple[Attempt, float]] = {}  # attempts whose checkpoint is on its way
        self._recorder = Recorder(timeline, truth)
        self._is_recorded = timeline is not None
        self.swings = SwingMeter.of(plant)
        self._sites = tuple(plant.sites)
        self._gpus_up = sum(spot.node.gpus for spot in plant.spots)
        self.woken = True
        self._recorder.note(Count.GPUS_UP, begins_at, self._gpus_up)
        self._rents, self._billing = rents, Billing(plant, rents, self.tally)
        if rents is not None:
            self._pending += rents.happen(begins_at)[0]

    # The port.

    def now(self) -> float:
        return self._now

    def events(self) -> Sequence[Event]:
        told = self._riding + self._pending
        if self._ended_runs:
            told.append(Forgotten(at=self._now, runs=tuple(self._ended_runs)))
            self._ended_runs = []
        self._riding, self._pending = [], []
        readings = self._gauges.read(self._now)
        told.append(Measured(at=self._now, source="twin", readings=tuple(readings), unchanged=self._sites))
        return told

    def apply(self, action: Action) -> None:
        if action.kind is ActionKind.REFUSE:
            self._refuse(action)
            return
        attempt = self._attempts.get(action.job)
        if action.kind in BEGINNINGS:
            if attempt is None and self._progress[action.job].attempts < action.attempt:
                self._begin(action)
            elif attempt is not None and attempt.number == action.attempt:  # on its way: it will answer
                self._pending.append(Acknowledged(at=self._now, action=action.id))
            return
        if attempt is None and action.kind is ActionKind.STOP:
            self._give_up(action.job)
            return
        if attempt is None or attempt.number != action.attempt or attempt.saving:
            return
        if action.kind is ActionKind.CAP_POWER:
            attempt.cap_fraction = action.fraction
            self._change(attempt)
            self._pending.append(Acknowledged(at=self._now, action=action.id))
        elif action.kind is ActionKind.SHRINK_BATCH:
            attempt.batch_fraction = action.fraction
            self._change(attempt)
            self._pending.append(Acknowledged(at=self._now, action=action.id))
        elif action.kind is ActionKind.PAUSE:
            self._save(attempt, "preempt" if action.rung is None else "pause")
        elif action.kind is ActionKind.STOP:
            self._lose(attempt, action.because, Ending.LOST if action.lost else Ending.STOPPED)

    def sleep_until(self, at: float | None) -> None:
        """Go on to the next thing that somebody should hear of, or to `at`."""
        until = math.inf if at is None else at
        while not self._pending:
            if self._riding and not (self._attempts or self._next_arrival or self._arriving):
                return  # nothing will happen that it could be told with
            next_at = self._next_at()
            if min(next_at, until) == math.inf:
                self.woken = bool(self._riding)
                return
            if until <= next_at:
                self._move(until)
                return
            self._move(next_at)
            if self._happen():
                return

    # What happens.

    @property
    def is_over(self) -> bool:
        """Nothing runs, nothing is on its way, and nobody will come."""
        return not (self._next_arrival or self._attempts or self.has_news or self._arriving)

    @property
    def has_news(self) -> bool:
        """Something happened that nobody has been told."""
        return bool(self._pending or self._riding)

    def _next_at(self) -> float:
        next_at = self._agenda.next_at()
        arrival = self._next_arrival
        if arrival is not None and arrival.at < next_at:
            next_at = arrival.at
        if self._attempts or arrival is not None or self.tally.waiting:
            next_at = min(next_at, self.truth.next_change_at())
            if self._rents is not None:
                next_at = min(next_at, self._rents.next_at())
        if self._attempts:
            next_at = min(next_at, self._gauges.next_look_at(self._now))
        return min(next_at, self._transfers.next_end_at()) if self._arriving else next_at

    def _move(self, at: float) -> None:
        at = max(at, self._now)
        if self._is_recorded:
            self._recorder.move(self._now, at)
        self._now = at

    def _happen(self) -> bool:
        """Let happen what is due now; whether the loop should hear of it."""
        now = self._now
        heard = False
        for incident in self.truth.advance(now):
            heard = self._incur(incident) or heard
        if self._rents is not None:
            self._hear_clouds(self._rents)
        for attempt in self._agenda.due(now):
            self._finish(attempt)
        for job in self._transfers.arrived(now) if self._arriving else ():
            attempt, restart_seconds = self._arriving.pop(job)
            self._start(attempt, restart_seconds)
            heard = True
        while self._next_arrival is not None and self._next_arrival.at <= now:
            self._submit(self._next_arrival)
        return heard or bool(self._pending) or self._gauges.next_look_at(now) < math.inf

    def _hear_clouds(self, rents: Renting) -> None:
        """Prices, machines that are taken back, and those that are gone now, with whoever is still there."""
        told, gone = rents.happen(self._now)
        self._pending += told
        for attempt in list(self._attempts.values()) if gone else ():
            if not gone.intersection([node for node, _ in attempt.nodes]):
                continue
            if attempt.job in self._arriving:  # it has not begun: its checkpoint is where it was
                self._count(attempt)
                self._leave(attempt, Ending.LOST, "its machine was taken back")
            else:
                self._lose(attempt, "its machine was taken back")

    @property
    def reclaims(self) -> int:
        """Machines of clouds that were taken back so far."""
        return 0 if self._rents is None else self._rents.reclaims

    @property
    def will_recover(self) -> bool:
        """What is off or was taken back may come back."""
        return self.truth.will_recover or (self._rents is not None and self._rents.will_recover)

    def _submit(self, arrival: Arrival) -> None:
        request = arrival.request
        self._progress[request.job] = Progress(arrival)
        self.tally.submitted += 1
        self._count_waiting(1)
        self.tally.last_arrival_at = self._now
        told = self._riding if self._would_wait(request) else self._pending
        told.append(
            RunSubmitted(
                at=self._now,
                source="twin",
                run=request.run,
                pipeline="trace",
                jobs=(request,),
                project=request.project,
            )
        )
        self._next_arrival = next(self._arrivals, None)
        if self._next_arrival is None:
            self.tally.move(self._now)
            self.tally.arriving = False

    def _refuse(self, action: Action) -> None:
        progress = self._progress.pop(action.job, None)
        if progress is None:
            return
        self._count_waiting(-1)
        rule = action.because.split(" of ", 1)[0] if " of " in action.because else "policy"
        self.tally.refused[rule] += 1
        self.tally.refusals += 1
        self._end_run(progress)

    def _give_up(self, job: str) -> None:
        """A job that was paused comes to the end of its ladder."""
        progress = self._progress.get(job)
        if progress is not None:
            self._count_waiting(-1)
            self.tally.failed += 1
            self._end_run(progress)

    def _begin(self, action: Action) -> None:
        assert action.place is not None
        progress, plant = self._progress[action.job], self._plant
        nodes = tuple([(plant.node_number[name], gpus) for name, gpus in action.place.nodes])
        first = progress.attempts == 0
        progress.attempts = action.attempt
        attempt = Attempt(
            job=action.job,
            number=action.attempt,
            progress=progress,
            nodes=nodes,
            site=action.place.site,
            gpus=action.place.gpus,
            spread_speed=spread_speed(plant, self._rates, progress.arrival, nodes),
            started_at=self._now,
            at=self._now,
            working_at=self._now,
            start_charged_to=progress.left_by or "restart",
            cap_fraction=action.fraction,
        )
        if first:
            self.tally.wait(progress.arrival.at, self._now, progress.arrival.request.gpus)
            self.tally.started += 1
        self._count_waiting(-1)
        self.tally.hold(attempt.site, attempt.gpus, self._now)
        self._count_running(1)
        self._attempts[action.job] = attempt
        self._elastic_running += progress.arrival.request.elastic is not None
        seconds = self._overheads.start if first else self._overheads.restart
        if self._rents is not None:
            self._rents.rent(nodes, self._now)
        origin = action.from_site or progress.saved_site
        clouds, size_bytes = plant.clouds, progress.arrival.saved_bytes
        moves = bool(origin) and origin != attempt.site
        if moves:
            attempt.egress_usd = egress_usd(plant, origin, attempt.site, size_bytes)
        # Between halls, who is lost at one and starts at another is taken to have a copy there.
        if action.kind is ActionKind.MIGRATE or (moves and (origin in clouds or attempt.site in clouds)):
            self.tally.migrations += 1
            if self._transfers.begin(action.job, origin, attempt.site, size_bytes, self._now):
                attempt.working_at = math.inf
                self._arriving[action.job] = (attempt, seconds)
                self._pending.append(Acknowledged(at=self._now, action=action.id))
                return
        self._start(attempt, seconds)

    def _start(self, attempt: Attempt, seconds: float) -> None:
        """It is there: from now on it draws."""
        arrival = attempt.progress.arrival
        attempt.count(self._now, self.tally.losses)
        attempt.working_at = self._now + seconds
        self.truth.load(
            attempt.job, attempt.nodes, arrival.utilisation, attempt.cap_fraction, self._now, arrival.curve
        )
        if self.swings is not None:
            self.swings.begin(arrival.request, attempt.nodes, attempt.cap_fraction)
        attempt.pace = self.truth.pace(attempt.job)
        told = self._riding if arrival.request.elastic is None else self._pending  # who runs may be resized
        told.append(AttemptStarted(at=self._now, job=attempt.job, attempt=attempt.number))
        if attempt.pace <= 0.0:  # a node of it is off
            self._lose(attempt, "a node is off")
        else:
            self._plan_end(attempt)

    def _change(self, attempt: Attempt) -> None:
        self._count(attempt)
        self.truth.change(
            attempt.job,
            self._now,
            utilisation=attempt.progress.arrival.utilisation * attempt.batch_fraction,
            cap_fraction=attempt.cap_fraction,
        )
        attempt.pace = self.truth.pace(attempt.job)
        self._plan_end(attempt)

    def _save(self, attempt: Attempt, why: str) -> None:
        """Keep all that was done, then leave."""
        self._count(attempt)
        attempt.progress.left_by = why
        self.tally.preemptions += 1
        if attempt.job in self._arriving:  # it has not begun: nothing is newer than its checkpoint
            self._leave(attempt, Ending.PAUSED, "")
            return
        attempt.saving, attempt.saving_since = True, self._now
        self._agenda.plan(self._now + self._overheads.save, attempt)

    def _finish(self, attempt: Attempt) -> None:
        """Its work is done, or its checkpoint saved."""
        self._count(attempt)
        progress = attempt.progress
        if attempt.saving:
            progress.kept_seconds, progress.kept_at = progress.done_seconds, self._now
            self._tell_saved(attempt)
            self._leave(attempt, Ending.PAUSED, "")
            return
        self._leave(attempt, Ending.SUCCEEDED, "")

    def _lose(self, attempt: Attempt, say: str, ending: Ending = Ending.LOST) -> None:
        """Cut off: what no checkpoint has is gone."""
        self._count(attempt)
        attempt.keep(self._now)
        before = attempt.progress.done_seconds
        attempt.fall_back(self.tally.losses)
        asked = attempt.progress.arrival.request.gpus
        self.tally.useful_gpu_seconds -= asked * (before - attempt.progress.done_seconds)
        attempt.progress.left_by = "restart"
        if attempt.progress.kept_seconds > 0.0:
            self._tell_saved(attempt)
        self._leave(attempt, ending, say)

    def _leave(self, attempt: Attempt, ending: Ending, say: str) -> None:
        job, now, progress = attempt.job, self._now, attempt.progress
        drawn = job not in self._arriving
        joules = self.truth.unload(job, now) if drawn else 0.0
        if self.swings is not None:
            self.swings.end(job)
        if not drawn:
            self._transfers.drop(job, now)
            del self._arriving[job]
        del self._attempts[job]
        self._elastic_running -= progress.arrival.request.elastic is not None
        self.tally.hold(attempt.site, -attempt.gpus, now)
        if self._rents is not None:
            self._rents.leave(attempt.nodes)
        if ending is Ending.SUCCEEDED and attempt.site in self._plant.clouds:
            size_bytes = progress.arrival.request.brings_back_bytes or progress.arrival.saved_bytes
            attempt.egress_usd += leaving_usd(self._plant, attempt.site, size_bytes)
        self._count_running(-1)
        # Where nobody waits, those who may grow do.
        matters = self.tally.waiting or self._elastic_running or ending is not Ending.SUCCEEDED
        told = self._pending if matters else self._riding
        told.append(
            AttemptEnded(
                at=now,
                source="twin",
                job=job,
                attempt=attempt.number,
                ending=ending,
                say=say,
                usage=self._billing.charge(attempt, joules, now),
            )
        )
        if ending is Ending.SUCCEEDED:
            self.tally.completed += 1
            self.tally.late += now > (progress.arrival.request.deadline_at or math.inf)
            self.tally.completion_seconds.append(now - progress.arrival.at)
            self._end_run(progress)
        elif ending is Ending.STOPPED:
            self.tally.failed += 1
            self._end_run(progress)
        else:
            self._count_waiting(1)

    def _end_run(self, progress: Progress) -> None:
        self._progress.pop(progress.arrival.request.job, None)
        if self._forget:
            self._ended_runs.append(progress.arrival.request.run)

    def _incur(self, incident: Incident) -> bool:
        """What happened by itself: jobs slow down, nodes go off, breakers trip."""
        now = self._now
        for key in incident.keys:
            attempt = self._attempts.get(key)
            if attempt is None or key in self._arriving:
                continue
            if incident.kind is IncidentKind.OFF:
                self._lose(attempt, f"{incident.subject} went off")
            else:
                self._count(attempt)
                attempt.pace = self.truth.pace(key)
                self._plan_end(attempt)
        if incident.kind in (IncidentKind.OFF, IncidentKind.ON):
            is_up = 1.0 if incident.kind is IncidentKind.ON else 0.0
            spots = self._plant.spots
            readings = tuple([(spots[node].node.name, "node_up", is_up) for node in incident.nodes])
            self._pending.append(Measured(at=now, source="twin", readings=readings))
            change = sum(spots[node].node.gpus for node in incident.nodes)
            self._gpus_up += change if incident.kind is IncidentKind.ON else -change
            self._recorder.note(Count.GPUS_UP, now, self._gpus_up)
        if incident.kind in (IncidentKind.FAULT, IncidentKind.MENDED):
            self._transfers.change(now)
        if incident.kind is not IncidentKind.PACE:
            say = f"{incident.kind}: {incident.subject}"
            self._pending.append(Noticed(at=now, source="twin", subject=incident.subject, say=say))
        return incident.kind is not IncidentKind.PACE

    # Keeping count.

    def _count(self, attempt: Attempt) -> None:
        before = attempt.progress.done_seconds
        attempt.count(self._now, self.tally.losses)
        asked = attempt.progress.arrival.request.gpus  # work is what it asked for, however wide it runs
        self.tally.useful_gpu_seconds += asked * (attempt.progress.done_seconds - before)

    def _count_waiting(self, more: int) -> None:
        self.tally.waiting += more
        if self._is_recorded:
            self._recorder.note(Count.JOBS_WAITING, self._now, self.tally.waiting)

    def _count_running(self, more: int) -> None:
        self.tally.running += more
        if self._is_recorded:
            self._recorder.note(Count.JOBS_RUNNING, self._now, self.tally.running)
            self._recorder.note(Count.GPUS_BUSY, self._now, self.tally.busy_gpus)

    def _plan_end(self, attempt: Attempt) -> None:
        if attempt.saving:  # it leaves when it is saved, however fast it was
            return
        attempt.planned = 0
        ends_at = attempt.ends_at()
        if ends_at < math.inf:
            self._agenda.plan(ends_at, attempt)

    def _tell_saved(self, attempt: Attempt) -> None:
        progress = attempt.progress
        progress.saved_site = attempt.site
        self._pending.append(
            CheckpointSaved(
                at=progress.kept_at,  # not when it was cut: what came after it is lost
                source="twin",
                job=attempt.job,
                attempt=attempt.number,
                step=int(progress.kept_seconds),
                site=attempt.site,
                size_bytes=int(progress.arrival.saved_bytes),
                seconds=self._overheads.save,
            )
        )

    def worst_ramps(self) -> dict[str, float]:
        """By name of each supply that has a ramp, the most watts that were added within a minute."""
        resources = self._plant.resources
        return {resources[number].name: watts for number, watts in self.truth.worst_ramps().items()}

    def finish(self) -> None:
        """The replay is over: close every account."""
        self.truth.advance(self._now)
        for attempt in list(self._attempts.values()):
            self._count(attempt)
            self._billing.charge(attempt, 0.0, self._now)
        self.tally.move(self._now)
        self._recorder.finish(self._now)
