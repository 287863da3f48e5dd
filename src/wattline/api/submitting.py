"""How does work come in, and how is it steered? Each call is durable, and audited, before it is answered."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from wattline.api.call import Call, Endpoint, answer, wait_for
from wattline.api.door import STEERS
from wattline.api.looking import job_of, run_of
from wattline.api.problems import ProblemError
from wattline.api.repeating import KEY, name_message, scope_of
from wattline.plane.finding import View
from wattline.plane.session import Session
from wattline.plane.steering import WANTS, ask_of, asking, describe_steered
from wattline.plane.submitting import Submission, Submitted, is_same
from wattline.plane.told import Steered
from wattline.state import Job, Run, RunSubmitted
from wattline.store.tokens import Role


class Steering(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to, for a migration; any other site unless said."""

    to: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


async def _submit(call: Call) -> Response:
    submission = await call.body(Submission)
    assert submission is not None
    scope = scope_of(call)
    if call.served.receiving.knows(submission):
        event = _receive(call, submission, scope)
    else:
        event = await asyncio.to_thread(_receive, call, submission, scope)
    run, project = event.run, event.project
    message = name_message("submit", scope)
    audit = call.audit(run, "accepted", f"{project}: {len(event.jobs)} jobs, source {submission.bundle[:12]}")
    (is_new,) = await wait_for(call.served.intake.put([(message, event)], audit))
    if not is_new:
        await check_same(call, run, message, submission)
    told = Submitted(
        run_id=run, project=project, jobs=tuple(job.job for job in event.jobs), repeated=not is_new
    )
    return answer(told, 202, {"Location": f"/api/v1/runs/{run}"})


def _receive(call: Call, submission: Submission, scope: str) -> RunSubmitted:
    """What is asked for as an event, if all of it is there and the caller may ask for it."""
    receiving = call.served.receiving
    if not receiving.knows(submission):
        _check_there(call, submission)
    call.caller.check_project(receiving.project_of(submission))
    if submission.approved and call.caller.role is not Role.OPERATOR:
        raise ProblemError(
            403,
            f"approved: token {call.caller.name} has the role {call.caller.role}; an operator approves",
            hint="leave approved out, or let an operator submit it",
            exit_code=1,
        )
    return receiving.receive(
        submission,
        actor=call.caller.name,
        run=receiving.name_run(submission, scope),
        after_seq=call.served.reader.last_seq,
    )


def _check_there(call: Call, submission: Submission) -> None:
    """What it names must have been put before; the answer says what to put."""
    named = [submission.pipeline, submission.bundle, *([submission.data] if submission.data else [])]
    missing = [one for one in named if not call.served.objects.path(f"sha256:{one}").is_file()]
    if missing:
        raise ProblemError(
            422,
            f"objects: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not here",
            hint="put them first: PUT /api/v1/objects/{sha256}",
            exit_code=2,
            missing=tuple(missing),
        )


async def check_same(call: Call, run: str, message: str, submission: Submission) -> None:
    """A key that was used before must have been used for this very submission."""

    def question(_session: Session, view: View | None) -> Run | None:
        return None if view is None else view.state.runs.get(run)

    documents: dict[str, str] = {}
    for _ in range(2):  # a message that is in the inbox no more is in the journal by then
        known = await wait_for(call.served.reader.look(question))
        waiting = None if known else await asyncio.to_thread(call.served.intake.find_submitted, message)
        found = known or waiting
        if found is not None:
            documents = found.documents
            break
    if is_same(documents, submission):
        return
    raise ProblemError(
        409,
        "Idempotency-Key: it was used before, for another submission",
        hint="use a new key for a new submission",
        exit_code=2,
    )


def _steering(want: str, of_job: bool) -> Endpoint:
    """The endpoint that asks for this of a run, or of one of its jobs."""

    async def handle(call: Call) -> Response:
        body = await call.body(Steering)
        to = body.to if body is not None else None
        if to is not None and want != "migrate":
            raise ProblemError(422, f"to: only a migration goes somewhere, not {want}", exit_code=2)

        def question(view: View) -> tuple[Run, list[Job]]:
            name = job_of(call, view)[1].id if of_job else run_of(call, view).run
            return ask_of(view.state, name, want, to=to, hands_over=call.served.hands_over)

        run, jobs = await call.ask(question)
        words = asking(jobs, want, at=time.time(), actor=call.caller.name, to=to)
        message = name_message(want, scope_of(call))
        events = [(f"{message}-{number}", word) for number, word in enumerate(words)]
        subject = jobs[0].id if of_job else run.run
        await wait_for(call.served.intake.put(events, call.audit(subject, "accepted", to or "")))
        return answer(describe_steered(run, jobs, want, to), 202)

    path = "/api/v1/runs/{run}/jobs/{phase}/" if of_job else "/api/v1/runs/{run}/"
    return Endpoint(
        method="POST",
        path=path + want,
        name=f"{want}_{'job' if of_job else 'run'}",
        say=f"Ask {'a job' if of_job else 'all jobs of a run'} to {want}.",
        handle=handle,
        answer=Steered,
        status=202,
        takes=Steering,
        takes_optional=True,
        headers=(KEY,),
        allowed=STEERS,
        refuses=(404, 408, 409, 413, 415, 422),
        changes=True,
    )


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/v1/runs",
        name="submit_run",
        say="Submit a run: a pipeline, its source and its data, put among the objects before.",
        handle=_submit,
        answer=Submitted,
        status=202,
        takes=Submission,
        headers=(KEY,),
        allowed=STEERS,
        refuses=(408, 409, 413, 415, 422),
        changes=True,
    ),
    *(_steering(want, of_job) for want in WANTS for of_job in (False, True)),
)
