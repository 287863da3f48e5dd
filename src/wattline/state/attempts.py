"""How what is told of one attempt changes the state: that it began, saved, ended, or did as it was asked.

An attempt is an epoch: what an older one says of a job that holds its claim under a newer one is not heard.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from wattline.state import event as events
from wattline.state.account import NOTHING, Account
from wattline.state.action import BEGINNINGS, ActionKind
from wattline.state.ending import Ending, Usage
from wattline.state.job import (
    ENDED,
    HOLDING,
    MOST_PAST,
    Flight,
    Job,
    JobState,
    Past,
    Saved,
    lift,
)
from wattline.state.tables import Tables
from wattline.state.turning import turn_failed

replace = msgspec.structs.replace


def current(state: Tables, job_id: str, attempt: int) -> Job | None:
    """The job, if this is about the attempt that holds its claim now; an old epoch is not heard."""
    job = state.jobs.get(job_id)
    return job if job is not None and job.attempt == attempt and job.state in HOLDING else None


def _attempt_started(state: Tables, event: events.AttemptStarted) -> None:
    job = current(state, event.job, event.attempt)
    if job is None or job.started_at is not None:
        return
    _land_flights(state, job, BEGINNINGS)
    first = event.at if job.first_started_at is None else job.first_started_at
    if job.state is not JobState.STARTING:  # it is on its way out already
        state.put(replace(job, started_at=event.at, first_started_at=first))
        return
    state.put(
        replace(
            job,
            started_at=event.at,
            first_started_at=first,
            state=JobState.RUNNING,
            since=event.at,
            say="",
        )
    )


def _progressed(state: Tables, event: events.Progressed) -> None:
    job = current(state, event.job, event.attempt)
    if job is not None:
        # A loss that diverged is written as null, which is read back as None.
        loss = event.loss if event.loss is not None and math.isfinite(event.loss) else None
        state.put(replace(job, step=event.step, total=event.total, loss=loss))


def _checkpoint_saved(state: Tables, event: events.CheckpointSaved) -> None:
    job = current(state, event.job, event.attempt)
    if job is not None and (job.saved is None or job.saved.at <= event.at):
        known = job.saved
        before = 0 if known is None else known.step if known.step < event.step else known.before
        saved = Saved(
            event.step,
            event.at,
            event.site,
            event.digest,
            event.size_bytes,
            event.seconds,
            event.cadence,
            min(before, event.step),
        )
        state.put(replace(job, saved=saved))


def _attempt_ended(state: Tables, event: events.AttemptEnded) -> None:
    job = current(state, event.job, event.attempt)
    if job is None:
        return
    ending = _ending(state, job, event.ending)
    give_back(state, job, event.usage, event.at)
    # Why it was asked to leave says more than how it left.
    say = job.say if ending is not event.ending or (ending is Ending.PAUSED and job.say) else event.say
    step = max(job.step, job.saved.step if job.saved is not None else 0)
    kept_at = job.saved.at if job.saved is not None else None
    past = (*job.past, Past(job.attempt, job.place, ending, job.started_at, event.at, step, say, kept_at))
    follow = _AFTER[ending](job)
    is_over = follow in ENDED
    # Only a pause that its ladder asked for leaves it standing on a rung.
    on_ladder = is_over or (follow is JobState.PAUSED and not job.asked)
    fails = not is_over and ending in (Ending.FAILED, Ending.NOT_STARTED)
    job = replace(
        job,
        state=follow,
        past=past if len(past) <= MOST_PAST else past[-MOST_PAST:],
        since=event.at,
        ended_at=event.at if is_over else job.ended_at,
        clear_since=None,
        ending=ending,
        say=say,
        usage=job.usage.plus(event.usage),
        promise=NOTHING,
        outputs=event.outputs or job.outputs,
        restarts=job.restarts + fails,
        rung=job.rung if on_ladder else -1,
        yields=False,
    )
    if job.request.elastic is not None and not is_over:
        job = _to_next_width(job)
    if is_over:
        end_job(state, job, event.at)
    else:
        state.put(job)


def _to_next_width(job: Job) -> Job:
    """Who is being resized goes on at its new width; who left for another reason asks as it did at first."""
    resized = job.returns_to if job.state is JobState.PAUSED and not job.asked else None
    request = job.request.as_asked if resized is None else job.request.at_width(resized.gpus)
    return replace(job, request=request, returns_to=resized)


def _ending(state: Tables, job: Job, told: Ending) -> Ending:
    """A stop for want of an answer ends what was silent, not the job."""
    if told is not Ending.STOPPED:
        return told
    asked = [state.flights[action_id].action for action_id in state.flying.get(job.id, ())]
    return Ending.LOST if any(action.lost for action in asked) else told


ASKED = {"cancel": JobState.CANCELLED, "pause": JobState.PAUSED}


def _may_restart(job: Job) -> JobState:
    left = job.restarts < job.request.restart_max
    return ASKED.get(job.asked, JobState.WAITING if left else JobState.FAILED)


_AFTER: dict[Ending, Callable[[Job], JobState]] = {
    Ending.SUCCEEDED: lambda _job: JobState.SUCCEEDED,
    Ending.FAILED: _may_restart,
    Ending.NOT_STARTED: _may_restart,
    Ending.TIMED_OUT: lambda _job: JobState.FAILED,
    Ending.PAUSED: lambda job: ASKED.get(job.asked, JobState.WAITING if job.yields else JobState.PAUSED),
    Ending.STOPPED: lambda job: ASKED.get(job.asked, JobState.FAILED),
    Ending.LOST: lambda job: ASKED.get(job.asked, JobState.WAITING),
}


def give_back(state: Tables, job: Job, usage: Usage, at: float) -> None:
    """Free all that an attempt held: claim, promise, and actions nobody will answer any more."""
    request = job.request
    state.ledger.release(request.job)
    account = state.account(request.project)
    nothing = job.promise is NOTHING or job.promise == NOTHING
    promised = account.promised if nothing else account.promised.plus(job.promise, -1)
    share = account.share.plus(-request.gpus, at)
    state.put_account(request.project, Account(account.week, account.used.plus(usage), promised, share))
    if state.resting.pools and job.place is not None:
        state.note_use(job.place)
    _land_flights(state, job, _ALL_KINDS)


def end_job(state: Tables, job: Job, at: float) -> None:
    """Put an ended job, and let what waits for it go on or give up."""
    state.put(job)
    for follower in state.dependants.pop(job.request.job, ()):
        unblock(state, state.jobs[follower], at)


def unblock(state: Tables, job: Job, at: float) -> None:
    """Let a blocked job wait for its place if all before it succeeded, and give up if one never will."""
    if job.state is not JobState.BLOCKED:
        return
    before = {earlier: state.jobs.get(earlier) for earlier in job.request.after}
    for name, earlier in before.items():
        if earlier is None or (earlier.state in ENDED and earlier.state is not JobState.SUCCEEDED):
            say = f"{name} is not known" if earlier is None else f"{earlier.request.phase} {earlier.state}"
            end_job(state, replace(job, state=JobState.CANCELLED, since=at, ended_at=at, say=say), at)
            return
    if all(earlier is not None and earlier.state is JobState.SUCCEEDED for earlier in before.values()):
        ready = JobState.PAUSED if job.asked == "pause" else JobState.WAITING
        state.put(replace(job, state=ready, since=at))


def _land_flights(state: Tables, job: Job, kinds: frozenset[ActionKind]) -> None:
    flying = state.flying.get(job.request.job)
    if flying is None:
        return
    for action_id in list(flying):
        if state.flights[action_id].action.kind in kinds:
            state.put_flight(action_id, None)


_ALL_KINDS = frozenset(ActionKind)
_ADJUSTMENTS = frozenset({ActionKind.CAP_POWER, ActionKind.SHRINK_BATCH})


def _acknowledged(state: Tables, event: events.Acknowledged) -> None:
    flight = state.flights.get(event.action)
    if flight is None:
        return
    if flight.action.kind not in _ADJUSTMENTS:  # the attempt itself answers; this says that it will
        # At once is in time too: whoever is asked again and says so at that very moment is at it.
        if flight.action.kind is not ActionKind.STOP and event.at >= flight.issued_at:
            state.put_flight(event.action, Flight(flight.action, event.at))
        return
    state.put_flight(event.action, None)
    job = current(state, flight.action.job, flight.action.attempt)
    if job is None:
        return
    fraction, ramped = flight.action.fraction, bool(state.plant.ramped)
    if flight.action.kind is ActionKind.CAP_POWER:
        lifted = lift(job, fraction, job.in_flight_fraction, event.at) if ramped else None
        job = lifted or replace(job, power_fraction=fraction)
        state.put(job)
        state.hold(job)
    elif flight.action.kind is ActionKind.SHRINK_BATCH:
        lifted = lift(job, job.power_fraction, fraction, event.at) if ramped else None
        state.put(lifted or replace(job, in_flight_fraction=fraction))


def _action_failed(state: Tables, event: events.ActionFailed) -> None:
    flight = state.flights.get(event.action)
    if flight is None:
        return
    state.put_flight(event.action, None)
    if flight.action.node:
        turn_failed(state, flight.action, event.at)
        return
    job = current(state, flight.action.job, flight.action.attempt)
    if job is None:
        return
    if flight.action.kind in BEGINNINGS:
        ending = Ending.NOT_STARTED
        if event.unreached and job.place is not None:  # not its own doing: it goes on where that can be had
            ending, tried = Ending.LOST, {**dict(job.unreached), job.place.site: event.at}
            state.put(replace(job, unreached=tuple(tried.items())))
        ended = events.AttemptEnded(
            at=event.at, job=job.id, attempt=job.attempt, ending=ending, say=event.say
        )
        _attempt_ended(state, ended)
    elif flight.action.kind is ActionKind.CAP_POWER:
        state.hold(job)
    elif _UNDONE.get(flight.action.kind) is job.state:
        still = JobState.STARTING if job.started_at is None else JobState.RUNNING
        state.put(replace(job, state=still, since=event.at, say=event.say, yields=False, returns_to=None))


_UNDONE = {ActionKind.PAUSE: JobState.PAUSING, ActionKind.STOP: JobState.STOPPING}


ATTEMPT_FOLDS: dict[type, Callable[[Tables, Any], None]] = {
    events.AttemptStarted: _attempt_started,
    events.Progressed: _progressed,
    events.CheckpointSaved: _checkpoint_saved,
    events.AttemptEnded: _attempt_ended,
    events.Acknowledged: _acknowledged,
    events.ActionFailed: _action_failed,
}
