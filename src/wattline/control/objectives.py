"""Objectives: are the policy's SLOs met, and what ate their error budgets?

Fed with the steps of the loop, one after the other, live or from a journal: a run of the twin has the same
steps. A step costs what happened in it; an indicator that no SLO speaks of costs nothing. Jobs count from
their submission on, so a job that was there before the first step that was seen does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from wattline.control.objectives_conditions import Around
from wattline.control.objectives_memory import Memory, Open, nothing_seen
from wattline.control.objectives_tally import Standing, Tally
from wattline.control.objectives_timing import Clock, Clocks, reason_of
from wattline.control.record import StepRecord
from wattline.control.replay import Documents, fold_step
from wattline.spec.expression import compile_expression
from wattline.spec.slo import CHECKPOINT_INTERVAL, SLO_CONDITIONS, Indicator, Slo
from wattline.state import (
    ENDED,
    POWER,
    Acknowledged,
    ActionKind,
    Asked,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Ending,
    Forgotten,
    GatesJudged,
    Job,
    JobRequest,
    JobState,
    Measured,
    Past,
    Released,
    RunSubmitted,
    State,
)
from wattline.units import SECONDS_PER_HOUR

_UNITS = {
    Indicator.START_WAIT: "jobs",
    Indicator.RESUME: "resumes",
    Indicator.PROMOTION: "releases",
    Indicator.ROLLBACK: "releases",
    Indicator.COMPLETION: "jobs",
    Indicator.LOST_WORK: "GPU-hours",
    Indicator.THROTTLED: "GPU-hours",
    Indicator.CAP_VIOLATIONS: "hours",
}
_ADJUSTMENTS = frozenset({ActionKind.CAP_POWER, ActionKind.SHRINK_BATCH})
# What meters said holds no longer than this without a step: nobody looked.
_LONGEST_GAP_SECONDS = 300.0
_MOST_JUDGED = 10_000


class Objectives:
    """The tallies of some SLOs, and what they have to remember."""

    def __init__(self, slos: Sequence[Slo], memory: Memory | None = None) -> None:
        """`memory` is of the same SLOs, and goes on with the step after the last that was noted."""
        self._slos = tuple(slos)
        known = memory or nothing_seen(len(slos))
        self._tallies = [
            Tally(slo, _UNITS[slo.indicator], cells) for slo, cells in zip(slos, known.cells, strict=True)
        ]
        self._by: dict[Indicator, list[int]] = {indicator: [] for indicator in Indicator}
        for number, slo in enumerate(slos):
            self._by[slo.indicator].append(number)
        self._clocks = Clocks(known.clocks)
        self._open = known.open
        self._followers = known.followers  # job → those that come after it
        self._adjusting = known.adjusting  # action in flight → its job
        self._judged = known.judged  # run → when its gates passed
        self._current = known.current  # release on a channel → since when
        self._metered, self._over = known.metered, known.over
        self._seen_at = known.seen_at
        self._handlers: dict[type, Callable[[State, Any, Around], None]] = {
            RunSubmitted: self._submitted,
            AttemptStarted: self._started,
            AttemptEnded: self._ended,
            CheckpointSaved: self._saved,
            Acknowledged: self._acknowledged,
            Asked: self._asked,
            GatesJudged: self._gates_judged,
            Released: self._released,
        }
        if self._by[Indicator.CAP_VIOLATIONS]:
            self._handlers[Measured] = self._measured

    def note(self, state: State, record: StepRecord) -> None:
        """Take in a step: after its events were folded into the state, before its decision is settled."""
        if not self._slos:
            return
        around, handlers = Around(state), self._handlers
        self._count_caps(state, record.decision.at)
        for event in record.events:
            handler = handlers.get(type(event))
            if handler is not None:
                handler(state, event, around)
        self._clocks.expire(record.decision.at, self._tallies, state)
        for action in record.decision.actions:
            if action.kind in _ADJUSTMENTS and action.job in self._open:
                self._adjusting[action.id] = action.job
                self._open[action.job].adjusting.append(action.id)
            elif action.kind is ActionKind.REFUSE:
                self._forget(action.job)
            elif action.kind is ActionKind.STOP and state.jobs[action.job].state is JobState.PAUSED:
                self._count_end(state, state.jobs[action.job], record.decision.at, around, succeeded=False)
                self._forget(action.job)

    def memory(self) -> Memory:
        return Memory(
            cells=[tally.cells for tally in self._tallies],
            clocks=list(self._clocks.running.values()),
            open=self._open,
            followers=self._followers,
            adjusting=self._adjusting,
            judged=self._judged,
            current=self._current,
            metered=self._metered,
            over=self._over,
            seen_at=self._seen_at,
        )

    def standings(self, state: State, at: float) -> list[Standing]:
        """How each SLO stands at a time that is not before the last step."""
        self._clocks.expire(at, self._tallies, state)
        return [tally.standing(at) for tally in self._tallies]

    def _applies(self, number: int, request: JobRequest, site: str | None, around: Around) -> bool:
        slo = self._slos[number]
        if slo.class_ is not None and slo.class_ != request.scheduling_class:
            return False
        if slo.project is not None and slo.project != request.project:
            return False
        if not slo.while_:
            return True
        return compile_expression(slo.while_, SLO_CONDITIONS).holds(around.values(request, site))

    def _submitted(self, state: State, event: RunSubmitted, around: Around) -> None:
        for request in event.jobs:
            job = state.jobs.get(request.job)
            if job is None or job.submitted_at != event.at or request.job in self._open or job.past:
                continue
            self._open[request.job] = Open()
            if job.state is JobState.BLOCKED:
                for earlier in request.after:
                    self._followers.setdefault(earlier, []).append(request.job)
            else:
                self._await_start(job, event.at, around)

    def _await_start(self, job: Job, at: float, around: Around) -> None:
        for number in self._by[Indicator.START_WAIT]:
            within = self._slos[number].within
            if isinstance(within, float) and self._applies(number, job.request, None, around):
                self._clocks.start(Clock(number, job.id, at, within, None, is_sure=True))

    def _started(self, state: State, event: AttemptStarted, around: Around) -> None:
        job, known = state.jobs.get(event.job), self._open.get(event.job)
        if job is None or known is None or job.attempt != event.attempt or job.place is None:
            return
        if known.ended_attempt >= event.attempt or known.stretch_at is not None:
            return
        if job.first_started_at == event.at:
            for number in self._by[Indicator.START_WAIT]:
                self._clocks.stop(number, job.id, event.at, self._tallies[number], state)
        for number in self._by[Indicator.RESUME]:
            here = job.place.site if self._slos[number].across_sites else None
            self._clocks.stop(number, job.id, event.at, self._tallies[number], state, unless_at=here)
        self._begin_stretch(known, job, event.at, around)

    def _ended(self, state: State, event: AttemptEnded, around: Around) -> None:
        job, known = state.jobs.get(event.job), self._open.get(event.job)
        if job is None or known is None or not job.past or known.ended_attempt >= event.attempt:
            return
        past = job.past[-1]
        if past.attempt != event.attempt or past.ended_at != event.at:
            return  # of an older epoch: the state did not hear it either
        known.ended_attempt = event.attempt
        for action in known.adjusting:
            self._adjusting.pop(action, None)
        known.adjusting.clear()
        self._end_stretch(state, known, job, event.at)
        self._count_held(state, job, past, around)
        if job.state in ENDED:
            if job.state is not JobState.CANCELLED:
                succeeded = job.state is JobState.SUCCEEDED
                self._count_end(state, job, event.at, around, succeeded=succeeded)
            self._follow(state, job.id, event.at, around)
        elif past.began_at is not None and not job.asked:
            self._await_resume(known, job, past, around)

    def _await_resume(self, known: Open, job: Job, past: Past, around: Around) -> None:
        left_site = past.place.site if past.place is not None else None
        for number in self._by[Indicator.RESUME]:
            slo = self._slos[number]
            within = known.interval_seconds if slo.within == CHECKPOINT_INTERVAL else slo.within
            if isinstance(within, float) and self._applies(number, job.request, left_site, around):
                is_sure = not slo.across_sites
                self._clocks.start(Clock(number, job.id, past.ended_at, within, left_site, is_sure))

    def _follow(self, state: State, job_id: str, at: float, around: Around) -> None:
        """A job has ended: what comes after it begins to wait, or never will."""
        del self._open[job_id]
        for follower in self._followers.pop(job_id, ()):
            job = state.jobs[follower]
            if follower not in self._open or job.state is JobState.BLOCKED:
                continue
            if job.state in ENDED:
                self._forget(follower)
            else:
                self._await_start(job, at, around)

    def _forget(self, job_id: str) -> None:
        """A job will not run any more, nor what comes after it."""
        self._open.pop(job_id, None)
        for follower in self._followers.pop(job_id, ()):
            self._forget(follower)

    def _asked(self, state: State, event: Asked, _around: Around) -> None:
        job = state.jobs.get(event.job)
        if job is not None and job.state is JobState.CANCELLED:
            self._forget(event.job)

    def _saved(self, state: State, event: CheckpointSaved, _around: Around) -> None:
        job, known = state.jobs.get(event.job), self._open.get(event.job)
        if job is None or known is None or job.attempt != event.attempt:
            return
        if known.saved_at is not None and event.at > known.saved_at:
            known.interval_seconds = event.at - known.saved_at
        known.saved_at = event.at

    def _acknowledged(self, state: State, event: Acknowledged, around: Around) -> None:
        job_id = self._adjusting.pop(event.action, None)
        known = self._open.get(job_id) if job_id is not None else None
        if job_id is None or known is None or known.stretch_at is None:
            return
        job = state.jobs[job_id]
        if _is_slowed(job) is not known.is_slowed:
            self._end_stretch(state, known, job, event.at)
            self._begin_stretch(known, job, event.at, around)

    def _begin_stretch(self, known: Open, job: Job, at: float, around: Around) -> None:
        site = job.place.site if job.place is not None else None
        known.stretch_at, known.is_slowed = at, _is_slowed(job)
        known.counted_by = tuple(
            [
                number
                for number in self._by[Indicator.THROTTLED]
                if self._applies(number, job.request, site, around)
            ]
        )

    def _end_stretch(self, state: State, known: Open, job: Job, at: float) -> None:
        if known.stretch_at is None:
            return
        gpus = job.request.gpus if job.place is None else job.place.gpus
        gpu_hours = gpus * (at - known.stretch_at) / SECONDS_PER_HOUR
        known.stretch_at = None
        for number in known.counted_by if gpu_hours > 0 else ():
            if known.is_slowed:
                self._tallies[number].add(at, bad=gpu_hours, reason=reason_of(state, job.id))
            else:
                self._tallies[number].add(at, good=gpu_hours)

    def _count_held(self, state: State, job: Job, past: Past, around: Around) -> None:
        """What an attempt held, and what of it was for nothing: all since its last checkpoint."""
        if past.began_at is None or not job.request.gpus:
            return
        kept_at = max(past.began_at, past.kept_at or past.began_at)
        lost_seconds = 0.0 if past.ending is Ending.SUCCEEDED else max(0.0, past.ended_at - kept_at)
        hours = (job.request.gpus if past.place is None else past.place.gpus) / SECONDS_PER_HOUR
        site = past.place.site if past.place is not None else None
        for number in self._by[Indicator.LOST_WORK]:
            if self._applies(number, job.request, site, around):
                good = hours * (past.ended_at - past.began_at - lost_seconds)
                bad, reason = hours * lost_seconds, _why_ended(state, job, past.ending)
                self._tallies[number].add(past.ended_at, good=good, bad=bad, reason=reason)

    def _count_end(self, state: State, job: Job, at: float, around: Around, *, succeeded: bool) -> None:
        site = job.place.site if job.place is not None else None
        for number in self._by[Indicator.COMPLETION]:
            if not self._applies(number, job.request, site, around):
                continue
            if succeeded:
                self._tallies[number].add(at, good=1.0)
            else:
                reason = _why_ended(state, job, job.ending or Ending.STOPPED)
                self._tallies[number].add(at, bad=1.0, reason=reason)

    def _gates_judged(self, _state: State, event: GatesJudged, _around: Around) -> None:
        if event.passed and event.run not in self._judged:
            self._judged[event.run] = event.at
            if len(self._judged) > _MOST_JUDGED:  # the oldest were never released
                del self._judged[next(iter(self._judged))]

    def _released(self, _state: State, event: Released, _around: Around) -> None:
        channel = f"{event.name}:{event.channel}"
        kind = Indicator.ROLLBACK if event.rolled_back else Indicator.PROMOTION
        since = self._current.get(channel) if event.rolled_back else self._judged.pop(event.run, None)
        self._current[channel] = event.at
        for number in self._by[kind] if since is not None else ():
            slo = self._slos[number]
            if since is None or (slo.project is not None and slo.project != event.project):
                continue
            if isinstance(slo.within, float) and event.at - since <= slo.within:
                self._tallies[number].add(event.at, good=1.0)
            else:
                self._tallies[number].add(event.at, bad=1.0, reason=channel)

    def _measured(self, state: State, event: Measured, _around: Around) -> None:
        plant, ledger = state.plant, state.ledger
        for subject, _, _ in event.readings:
            resource = plant.resource_number.get(subject)
            if resource is None or plant.kinds[resource] not in POWER or ledger.drawn_at[resource] is None:
                continue
            self._metered.add(resource)
            if ledger.drawn[resource] > ledger.caps[resource]:
                self._over.add(resource)
            else:
                self._over.discard(resource)

    def _count_caps(self, state: State, at: float) -> None:
        """Every metered rack and supply was as it was last read, since the last step."""
        since, self._seen_at = self._seen_at, at
        numbers = self._by[Indicator.CAP_VIOLATIONS]
        if since is None or not numbers or not self._metered:
            return
        hours = min(at - since, _LONGEST_GAP_SECONDS) / SECONDS_PER_HOUR
        for number in numbers if hours > 0 else ():
            self._tallies[number].add(at, good=hours * (len(self._metered) - len(self._over)))
            for resource in sorted(self._over):
                known = state.plant.resources[resource]
                self._tallies[number].add(at, bad=hours, reason=f"{known.kind} {known.name}")


def observe(
    state: State | None,
    steps: Iterable[tuple[int, StepRecord]],
    documents: Documents,
    watch: Callable[[State, StepRecord], None],
) -> State | None:
    """The state after these steps; each is shown between what it took in and what it decided.

    Runs that a step forgets may have ended in that very step: they are forgotten after it was shown.
    """
    for seq, record in steps:
        forgotten = [event for event in record.events if isinstance(event, Forgotten)]
        if forgotten:
            rest = tuple([event for event in record.events if not isinstance(event, Forgotten)])
            state = fold_step(state, seq, msgspec.structs.replace(record, events=rest), documents)
        else:
            state = fold_step(state, seq, record, documents)
        watch(state, record)
        state.fold(forgotten)
        if record.decided:
            state.settle(record.decision)
    return state


def _is_slowed(job: Job) -> bool:
    return job.power_fraction < 1.0 or job.in_flight_fraction < 1.0


def _why_ended(state: State, job: Job, ending: Ending) -> str:
    """What the ladder did is the doing of the rule that pressed; the rest is told by how it ended."""
    if ending in (Ending.PAUSED, Ending.STOPPED) and not job.asked:
        return reason_of(state, job.id)
    return f"asked to {job.asked}" if job.asked else ending.value
