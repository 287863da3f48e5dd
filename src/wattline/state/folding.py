"""How one event changes the state. One function for each kind; late and repeated ones change nothing.

What is told of attempts is in `attempts.py`, of sites with an agent in `agents.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from wattline.state import event as events
from wattline.state.attempts import ASKED, end_job, unblock
from wattline.state.exceptions import exception_answered, exception_asked
from wattline.state.job import ENDED, MIGRATE, Job, JobState, Run
from wattline.state.market import Reclaim
from wattline.state.measuring import fold_reading, fold_silence, is_node_up
from wattline.state.tables import Tables
from wattline.state.turning import turned

replace = msgspec.structs.replace


def _adopted(state: Tables, event: events.Adopted) -> None:
    documents = {
        "facility": event.facility,
        "facility_sha256": event.facility_sha256,
        "policy": event.policy,
        "policy_sha256": event.policy_sha256,
        "code": event.code,
    }
    if event.canary_sha256:
        documents |= {
            "canary": event.canary,
            "canary_sha256": event.canary_sha256,
            "canary_on": "\n".join(event.canary_on),
            "canary_share": repr(event.canary_share),
        }
    if any(state.adopted.get(name) != documents.get(name) for name in ("canary_sha256", "canary_on")):
        for job_id in list(state.reservations):  # a place that is kept may be on the other side now
            state.put_reservation(job_id, None)
    state.put_adopted(documents)
    state.stuck.clear()  # another policy, or another version of the code, may think otherwise
    state.put_forecast(None)


def _run_submitted(state: Tables, event: events.RunSubmitted) -> None:
    if event.run in state.runs or not state.jobs.keys().isdisjoint([one.job for one in event.jobs]):
        return
    for request in event.jobs:
        first = JobState.BLOCKED if request.after else JobState.WAITING
        state.put(Job(request=request, state=first, submitted_at=event.at, since=event.at))
        if first is JobState.WAITING:
            state.newcomers[request.job] = None
        for earlier in request.after:
            state.dependants.setdefault(earlier, []).append(request.job)
    for request in event.jobs:
        if request.after:
            unblock(state, state.jobs[request.job], event.at)
    state.put_run(
        Run(
            run=event.run,
            pipeline=event.pipeline,
            project=event.project,
            actor=event.actor,
            submitted_at=event.at,
            jobs=tuple([request.job for request in event.jobs]),
            documents=event.documents,
            process=event.source,
        )
    )


def _measured(state: Tables, event: events.Measured) -> None:
    for subject, quantity, value in event.readings:
        known = state.readings.get((subject, quantity))
        if known is not None and event.at <= known[1]:
            continue
        if value is None or not math.isfinite(value):
            fold_silence(state, subject, quantity)
            continue
        state.note_reading(subject, quantity, value, event.at)
        fold_reading(state, subject, quantity, value, event.at)
    if event.unchanged:
        state.hear(event.unchanged, event.at)


def _nothing(_state: Tables, _event: events.Noticed | events.Ticked) -> None:
    """Worth keeping in the journal; changes nothing here."""


def _asked(state: Tables, event: events.Asked) -> None:
    job = state.jobs.get(event.job)
    if job is None or job.state in ENDED:
        return
    idle = job.state in (JobState.WAITING, JobState.BLOCKED, JobState.PAUSED)
    if event.want == "cancel" and idle:
        cancelled = replace(
            job,
            state=JobState.CANCELLED,
            since=event.at,
            ended_at=event.at,
            say=f"cancelled by {event.actor}",
        )
        end_job(state, cancelled, event.at)
    elif event.want == "pause" and job.state is JobState.WAITING:
        state.put(replace(job, state=JobState.PAUSED, since=event.at, asked="pause"))
    elif event.want == "resume":
        run = state.runs.get(job.request.run)
        if event.source and run is not None:
            state.put_run(replace(run, process=event.source))
        queued = job.state is JobState.PAUSED and job.place is None  # it never ran: back in line
        resumed = replace(job, state=JobState.WAITING, since=event.at) if queued else job
        state.put(replace(resumed, asked="", resumed_at=event.at))
    elif event.want == "burst":
        state.put(replace(job, request=replace(job.request, burst=True), bursts=True))
    elif event.want == MIGRATE:
        if job.state is JobState.RUNNING and job.request.checkpoints:
            state.put(replace(job, asked=f"{MIGRATE} to {event.to}" if event.to else MIGRATE))
    elif event.want in ASKED:
        state.put(replace(job, asked=event.want))


def _gates_judged(state: Tables, event: events.GatesJudged) -> None:
    run = state.runs.get(event.run)
    if run is not None:
        state.put_run(
            replace(run, gates=event.results, gates_passed=event.passed, manifest=event.manifest, judged=True)
        )


def _run_concluded(state: Tables, event: events.RunConcluded) -> None:
    run = state.runs.get(event.run)
    if run is not None and run.ended_at is None:
        state.put_run(replace(run, status=event.status, say=event.say, ended_at=event.at))


def _forgotten(state: Tables, event: events.Forgotten) -> None:
    for run in event.runs:
        state.forget(run)


def _released(state: Tables, event: events.Released) -> None:
    state.put_release(
        f"{event.name}:{event.channel}",
        {
            "name": event.name,
            "channel": event.channel,
            "run": event.run,
            "manifest": event.manifest,
            "number": event.number,
            "at": event.at,
            "by": event.actor,
            "rolled_back": event.rolled_back,
        },
    )


def _exception_asked(state: Tables, event: events.ExceptionAsked) -> None:
    asked = exception_asked(state.exceptions, event)
    if asked is not None:
        state.put_exception(asked)


def _exception_answered(state: Tables, event: events.ExceptionAnswered) -> None:
    answered = exception_answered(state.exceptions, event)
    if answered is not None:
        state.put_exception(answered)
        if event.approved:
            state.stuck.clear()  # what a rule or a quota kept from starting may start


def _forecasted(state: Tables, event: events.Forecasted) -> None:
    if state.forecast is None or event.at > state.forecast.at:
        state.put_forecast(event)


def _outlooked(state: Tables, event: events.Outlooked) -> None:
    known = state.outlooks.get(event.site)
    if event.site in state.plant.sites and (known is None or event.at > known.at):
        state.put_outlook(event)


def _node_reclaimed(state: Tables, event: events.NodeReclaimed) -> None:
    node, known = state.plant.node_number.get(event.node), state.reclaims.get(event.node)
    if node is None or (known is not None and event.at <= known.heard_at):
        return
    # Said again, it leaves no later than it did.
    leaves_at = event.at + max(0.0, event.notice_seconds)
    if known is not None and known.leaves_at is not None:
        leaves_at = min(leaves_at, known.leaves_at)
    state.put_reclaim(event.node, Reclaim(event.at, leaves_at))
    state.ledger.set_up(node, is_up=False)


def _node_given_back(state: Tables, event: events.NodeGivenBack) -> None:
    node, known = state.plant.node_number.get(event.node), state.reclaims.get(event.node)
    if node is None or known is None or event.at <= known.heard_at:
        return
    state.put_reclaim(event.node, Reclaim(event.at, None))
    state.ledger.set_up(node, is_up=is_node_up(state, event.node))


FOLDS: dict[type, Callable[[Tables, Any], None]] = {
    events.Adopted: _adopted,
    events.RunSubmitted: _run_submitted,
    events.Measured: _measured,
    events.Noticed: _nothing,
    events.Ticked: _nothing,
    events.Asked: _asked,
    events.GatesJudged: _gates_judged,
    events.RunConcluded: _run_concluded,
    events.Forgotten: _forgotten,
    events.Released: _released,
    events.ExceptionAsked: _exception_asked,
    events.ExceptionAnswered: _exception_answered,
    events.Forecasted: _forecasted,
    events.Outlooked: _outlooked,
    events.NodeSlept: turned,
    events.NodeWoke: turned,
    events.NodeReclaimed: _node_reclaimed,
    events.NodeGivenBack: _node_given_back,
}
