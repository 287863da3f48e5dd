"""What stands where: runs, jobs, why they wait, and a team's week."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import msgspec
from starlette.responses import PlainTextResponse, Response

from wattline.api.call import Call, Count, Endpoint, Parameter, answer, wait_for
from wattline.api.door import LOOKS
from wattline.api.problems import ProblemError
from wattline.plane.explaining import describe_answer, explain_jobs
from wattline.plane.explaining_past import describe_past_answer, explain_jobs_then
from wattline.plane.finding import View, find_jobs, find_run, newest_first
from wattline.plane.moments import iso
from wattline.plane.reporting import describe_report, make_report
from wattline.plane.session import Session
from wattline.plane.status import describe_all, describe_one, describe_phase, describe_standing
from wattline.plane.summary import describe_run
from wattline.plane.told import (
    ExplainedJob,
    ExplainedRun,
    PhaseStanding,
    ReportTold,
    RunStanding,
    RunStatus,
    Status,
)
from wattline.spec import Policy, parse_document
from wattline.state import Job, Run, job_id

_SOON_SECONDS = 1.0  # clocks of people who ask are no better


class AskedThen(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """As of when, in seconds since 1970 (now unless said), and by which policy document besides."""

    at: Annotated[float, msgspec.Meta(ge=0.0, le=1e11)] | None = None
    policy: Annotated[str, msgspec.Meta(min_length=1, max_length=1 << 18)] | None = None


class Runs(TypedDict):
    runs: list[RunStanding]


class Jobs(TypedDict):
    jobs: list[PhaseStanding]


class Found(TypedDict):
    """What a name stands for: a run, a job as run/phase, or a phase of the newest run."""

    run_id: str
    jobs: list[str]
    is_whole_run: bool


async def _status(call: Call) -> Response:
    def question(_session: Session, view: View | None) -> Response:
        if call.wants_text:
            return PlainTextResponse(call.served.words.status(view, call.caller.may_see))
        return answer(describe_all(view, call.served.home, call.caller.may_see))

    return await wait_for(call.served.reader.look(question))


async def _runs(call: Call) -> Response:
    limit = call.query.get("limit", 100)

    def question(_session: Session, view: View | None) -> Response:
        runs = [] if view is None else newest_first(view.state)
        seen = [run for run in runs if call.caller.may_see(run.project)][:limit]
        return answer({"runs": [describe_standing(view, run) for run in seen if view is not None]})

    return await wait_for(call.served.reader.look(question))


async def _run(call: Call) -> Response:
    def question(view: View) -> Response:
        run = run_of(call, view)
        if call.wants_text:
            return PlainTextResponse(call.served.words.run(view, run))
        return answer(describe_one(view, run))

    return await call.ask(question)


async def _result(call: Call) -> Response:
    def question(view: View) -> Response:
        run = run_of(call, view)
        if call.wants_text:
            return PlainTextResponse(call.served.words.result(view, run))
        return answer(describe_run(view.session, run))

    return await call.ask(question)


async def _jobs(call: Call) -> Response:
    def question(view: View) -> Response:
        run = run_of(call, view)
        return answer({"jobs": [describe_phase(view.state, view.state.jobs[job]) for job in run.jobs]})

    return await call.ask(question)


async def _job(call: Call) -> Response:
    return await call.ask(lambda view: answer(describe_phase(view.state, job_of(call, view)[1])))


async def _explain_run(call: Call) -> Response:
    return await call.ask(lambda view: _explained(call, view, run_of(call, view).run))


async def _explain_job(call: Call) -> Response:
    return await call.ask(lambda view: _explained(call, view, job_of(call, view)[1].id))


async def _explain_run_then(call: Call) -> Response:
    return await _explain_then(call, lambda view: run_of(call, view).run)


async def _explain_job_then(call: Call) -> Response:
    return await _explain_then(call, lambda view: job_of(call, view)[1].id)


async def _explain_then(call: Call, name_in: Callable[[View], str]) -> Response:
    asked = await call.body(AskedThen) or AskedThen()
    policy = None
    if asked.policy is not None:
        policy = parse_document(asked.policy.encode(), Policy, file="policy")
    if asked.at is not None and asked.at > time.time() + _SOON_SECONDS:
        raise ProblemError(422, f"at: {iso(asked.at)} has not come yet", exit_code=2)

    def question(view: View) -> Response:
        moment = view.at if asked.at is None else asked.at
        found = explain_jobs_then(view, name_in(view), moment, policy)
        if call.wants_text:
            return PlainTextResponse(call.served.words.explain_past(found))
        return answer(describe_past_answer(found))

    return await wait_for(call.served.reader.recall(question))


def _explained(call: Call, view: View, name: str) -> Response:
    found = explain_jobs(view, name)
    if call.wants_text:
        return PlainTextResponse(call.served.words.explain(view, found))
    return answer(describe_answer(view, found))


async def _find(call: Call) -> Response:
    def question(view: View) -> Response:
        name = call.query.get("name")
        run, jobs = find_jobs(view.state, name)
        call.caller.check_project(run.project)
        found: Found = {
            "run_id": run.run,
            "jobs": [job.id for job in jobs],
            "is_whole_run": name is None or name == run.run,
        }
        return answer(found)

    return await call.ask(question)


async def _report(call: Call) -> Response:
    team = call.query.get("team") or call.caller.project
    if team is not None:
        call.caller.check_project(team)

    def question(view: View) -> Response:
        run = call.query.get("run")
        if run is not None:
            call.caller.check_project(find_run(view.state, run).project)
        report = make_report(view, team=team, week=call.query.get("week", "this"), run=run)
        if call.wants_text:
            return PlainTextResponse(call.served.words.report(report, team is not None))
        return answer(describe_report(report))

    return await call.ask(question)


def run_of(call: Call, view: View) -> Run:
    """The run that the path names, if it is any business of the caller."""
    run = find_run(view.state, call.name("run"))
    call.caller.check_project(run.project)
    return run


def job_of(call: Call, view: View) -> tuple[Run, Job]:
    run = run_of(call, view)
    _, jobs = find_jobs(view.state, job_id(run.run, call.name("phase")))
    return run, jobs[0]


_LIMIT = Parameter(name="limit", kind=Count, say="At most so many; 100 unless said.")
_GONE = (404,)
ENDPOINTS = (
    Endpoint(
        method="GET", path="/api/v1/status", name="status", say="All runs, who conducts, what is released.",
        handle=_status, answer=Status, allowed=LOOKS,
    ),
    Endpoint(
        method="GET", path="/api/v1/runs", name="list_runs", say="Runs, newest first.",
        handle=_runs, answer=Runs, allowed=LOOKS, query=(_LIMIT,), refuses=(422,),
    ),
    Endpoint(
        method="GET", path="/api/v1/runs/{run}", name="show_run", say="A run with its phases and attempts.",
        handle=_run, answer=RunStatus, allowed=LOOKS, refuses=_GONE,
    ),
    Endpoint(
        method="GET", path="/api/v1/runs/{run}/result", name="show_result",
        say="What came of a run: the object that `wattline run --output json` prints.",
        handle=_result, answer=dict[str, Any], allowed=LOOKS, refuses=_GONE,
    ),
    Endpoint(
        method="GET", path="/api/v1/runs/{run}/jobs", name="list_jobs", say="The jobs of a run.",
        handle=_jobs, answer=Jobs, allowed=LOOKS, refuses=_GONE,
    ),
    Endpoint(
        method="GET", path="/api/v1/runs/{run}/jobs/{phase}", name="show_job", say="One job of a run.",
        handle=_job, answer=PhaseStanding, allowed=LOOKS, refuses=_GONE,
    ),
    Endpoint(
        method="GET", path="/api/v1/runs/{run}/explain", name="explain_run",
        say="Why the jobs of a run stand as they do, and what would change it.",
        handle=_explain_run, answer=ExplainedRun, allowed=LOOKS, refuses=_GONE,
    ),
    Endpoint(
        method="GET", path="/api/v1/runs/{run}/jobs/{phase}/explain", name="explain_job",
        say="Why a job stands as it does, and what would change it.",
        handle=_explain_job, answer=ExplainedJob, allowed=LOOKS, refuses=_GONE,
    ),
    Endpoint(
        method="POST", path="/api/v1/runs/{run}/explain", name="explain_run_then",
        say="The same as of an earlier time, and what another policy would have decided; nothing changes.",
        handle=_explain_run_then, takes=AskedThen, takes_optional=True, answer=dict[str, Any], allowed=LOOKS,
        refuses=(404, 408, 413, 415, 422),
    ),
    Endpoint(
        method="POST", path="/api/v1/runs/{run}/jobs/{phase}/explain", name="explain_job_then",
        say="The same as of an earlier time, and what another policy would have decided; nothing changes.",
        handle=_explain_job_then, takes=AskedThen, takes_optional=True, answer=dict[str, Any], allowed=LOOKS,
        refuses=(404, 408, 413, 415, 422),
    ),
    Endpoint(
        method="GET", path="/api/v1/find", name="find", say="Which run and jobs a name stands for.",
        handle=_find, answer=Found, allowed=LOOKS, refuses=(404, 422),
        query=(Parameter(name="name", say="A run, run/phase, or a phase of the newest run."),),
    ),
    Endpoint(
        method="GET", path="/api/v1/report", name="report", say="A team's week, and the SLOs.",
        handle=_report, answer=ReportTold, allowed=LOOKS, refuses=(404, 422),
        query=(
            Parameter(name="team", say="One team; all of them unless named."),
            Parameter(name="week", say="this, last, or such as 2026-W47."),
            Parameter(name="run", say="Also what a run takes of its team's week."),
        ),
    ),
)  # fmt: skip
