"""What may a person ask of jobs that were submitted: pause, resume, cancel, migrate; and of which?

What is asked is an event like any other. Who conducts takes it in with the next turn, and the journal keeps
whose word it was.
"""

from __future__ import annotations

from collections.abc import Callable

from wattline.errors import RefusedError, UsageError
from wattline.plane.finding import find_jobs, unknown
from wattline.plane.told import Steered
from wattline.state import ENDED, MIGRATE, Asked, Job, JobState, Run, State

HandsOver = Callable[[State, str, str | None], bool]
"""Whether what is saved at a site can be had at another, or at any: as far as who conducts knows."""

WANTS = ("pause", "resume", "cancel", MIGRATE)
_DONE = {"pause": "pauses", "resume": "goes on", "cancel": "ends", MIGRATE: "moves"}


def ask_of(
    state: State,
    name: str | None,
    want: str,
    *,
    to: str | None = None,
    hands_over: HandsOver = lambda *_: True,
) -> tuple[Run, list[Job]]:
    """The jobs that can do what is asked; where none can, the error says why."""
    if want not in WANTS:
        raise UsageError(f"{want[:50]!r} cannot be asked of a job", hint=f"one of {', '.join(WANTS)}")
    if to is not None and to not in state.plant.sites:
        raise unknown("site", to, state.plant.sites)
    run, jobs = find_jobs(state, name)
    troubles = {
        job.id: _trouble(job, want, to)
        or (_way_trouble(state, job, to, hands_over) if want == MIGRATE else "")
        for job in jobs
    }
    able = [job for job in jobs if not troubles[job.id]]
    if not able:
        told = "; ".join(f"{job_id} {trouble}" for job_id, trouble in troubles.items())
        raise RefusedError(
            f"nothing to {want}: {told}", hint=f"`wattline status {run.run}` shows how it stands"
        )
    return run, able


def asking(
    jobs: list[Job], want: str, *, at: float, actor: str, source: str = "", to: str | None = None
) -> list[Asked]:
    """A person's word about each of them."""
    return [
        Asked(
            at=at,
            actor=actor,
            project=job.request.project,
            source=source,
            job=job.id,
            want=want,
            to=to or "",
        )
        for job in jobs
    ]


def describe_steered(run: Run, jobs: list[Job], want: str, to: str | None) -> Steered:
    told: Steered = {"run_id": run.run, "want": want, "jobs": [job.id for job in jobs]}
    if to is not None:
        told["to"] = to
    return told


def say_steered(told: Steered) -> str:
    """What follows, for people."""
    where = f" to {told['to']}" if "to" in told else ""
    return "\n".join(f"{job} {_DONE[told['want']]}{where}" for job in told["jobs"])


def _trouble(job: Job, want: str, to: str | None) -> str:
    """Why a job cannot do this; nothing where it can."""
    if job.state in ENDED:
        return f"has ended: {job.state}"
    if want == "pause" and job.asked == "pause":
        return "was asked to pause before"
    if want == "resume" and not (job.state is JobState.PAUSED or job.asked):
        return f"is not paused: {job.state}"
    if want != MIGRATE:
        return ""
    if job.state is not JobState.RUNNING:
        return f"does not run: {job.state}"
    if not job.request.checkpoints:
        return "keeps no checkpoints, so it cannot move"
    return f"runs at {to} already" if job.place is not None and job.place.site == to else ""


def _way_trouble(state: State, job: Job, to: str | None, hands_over: HandsOver) -> str:
    """Why a job that may move has no way: better told now than once it has saved and left."""
    assert job.place is not None
    here = job.place.site
    if to is not None and frozenset((here, to)) not in state.plant.links:
        return f"has no way: no link of the facility joins {here} and {to}"
    record = None if to is None else state.sites.get(to)
    if record is not None and not record.takes_work:
        return f"cannot begin at {to} now: {record.standing}, {record.say}"
    if not hands_over(state, here, to):
        whose = f"its agent at {here}" if here in state.sites else "`wattline serve`"
        return f"has a checkpoint that nobody could fetch: start {whose} with --receive (docs/sites.md)"
    return ""
