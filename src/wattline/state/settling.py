"""How a decision changes the state: what was decided is promised before it is done."""

from __future__ import annotations

import msgspec

from wattline.state.account import NOTHING
from wattline.state.action import BEGINNINGS, Action, ActionKind
from wattline.state.attempts import end_job
from wattline.state.job import MIGRATE, Flight, Job, JobState, seconds_left
from wattline.state.market import promise_at
from wattline.state.tables import Tables
from wattline.state.turning import turn

replace = msgspec.structs.replace


def settle_action(state: Tables, action: Action, at: float) -> None:
    known = state.flights.get(action.id)
    if known is not None:  # asked again: nothing new is promised
        state.put_flight(action.id, Flight(action, at, known.tries + 1))
        return
    if action.node:
        turn(state, action, at)
        return
    job = state.jobs[action.job]
    if action.kind in BEGINNINGS:
        state.put_flight(action.id, Flight(action, at))
        _begin(state, job, action, at)
        return
    job = replace(job, actions=job.actions + 1)
    if action.rung is not None:
        rung_at = at if action.rung > job.rung else job.rung_at
        job = replace(job, rung=action.rung, rung_at=rung_at, clear_since=None)
    if action.kind is ActionKind.REFUSE:
        end_job(state, replace(job, state=JobState.REFUSED, since=at, ended_at=at, say=action.because), at)
        return
    if action.kind is ActionKind.STOP and job.state is JobState.PAUSED:  # nothing runs that could answer
        end_job(state, replace(job, state=JobState.FAILED, since=at, ended_at=at, say=action.because), at)
        return
    state.put_flight(action.id, Flight(action, at))
    if action.kind is ActionKind.CAP_POWER:
        state.put(job if action.rung is not None else replace(job, capped_at=at))
        state.hold(job)
    elif action.kind is ActionKind.PAUSE:
        pausing = replace(job, state=JobState.PAUSING, since=at, say=action.because, yields=action.yields)
        if action.returns_to is not None:  # a person's word to go there is heeded with this
            asked = "" if job.asked.startswith(MIGRATE) else job.asked
            pausing = replace(pausing, returns_to=action.returns_to, asked=asked)
        state.put(pausing)
    elif action.kind is ActionKind.STOP:
        state.put(replace(job, state=JobState.STOPPING, since=at, say=action.because))
    else:
        state.put(job)


def _begin(state: Tables, job: Job, action: Action, at: float) -> None:
    assert action.place is not None
    waiting = job
    if job.request.elastic is not None:
        job = replace(job, request=job.request.at_width(action.place.gpus))
    if action.mode:
        job = replace(job, mode=action.mode)
    promise = promise_at(
        state.readings,
        state.plant,
        job.request,
        action.place,
        action.fraction,
        seconds_left(job),
        job.saved,
    )
    job = replace(
        job,
        state=JobState.STARTING,
        since=at,
        actions=job.actions + 1,
        attempt=action.attempt,
        place=action.place,
        started_at=None,
        rung=job.rung if action.rung is None else action.rung,
        rung_at=at if action.rung is not None and action.rung > job.rung else job.rung_at,
        clear_since=job.clear_since if action.rung is None else None,
        power_fraction=action.fraction,
        in_flight_fraction=1.0,
        returns_to=None,
        lifted_at=None,
        lifted_from=(1.0, 1.0),
        promise=promise,
    )
    state.put(job)
    state.hold(job)
    account = state.account(job.request.project)
    nothing = promise is NOTHING or promise == NOTHING
    promised = account.promised if nothing else account.promised.plus(promise)
    share = account.share.plus(job.request.gpus, at)
    if state.resting.pools:
        state.note_use(action.place)
        if action.kind is ActionKind.START:
            state.note_came(waiting, action.place)
    state.put_account(job.request.project, replace(account, promised=promised, share=share))
