"""How does a run or a job stand, in a few words?"""

from __future__ import annotations

from wattline.plane.finding import View
from wattline.policy import dominant
from wattline.state import ENDED, Job, JobState, Outcome, Place, Run, State
from wattline.units import format_named, format_share

# Of a run's jobs, the one that says how the run stands: what moves first, then what keeps it from moving.
_TELLING = (
    JobState.RUNNING,
    JobState.STARTING,
    JobState.PAUSING,
    JobState.STOPPING,
    JobState.PAUSED,
    JobState.WAITING,
    JobState.FAILED,
    JobState.REFUSED,
    JobState.CANCELLED,
    JobState.BLOCKED,
    JobState.SUCCEEDED,
)
_MOST_NODES_NAMED = 2


def state_of(view: View, run: Run) -> str:
    """How a run stands, in a word or two."""
    if run.ended_at is not None:
        released = any(release["run"] == run.run for release in view.state.releases.values())
        return "released" if released and run.status == "awaiting approval" else run.status
    job = telling_job(view, run)
    if view.writer is None and job.state not in (JobState.PAUSED, JobState.WAITING, JobState.BLOCKED):
        return "interrupted"
    return "running" if job.state in ENDED else str(job.state)


def telling_job(view: View, run: Run) -> Job:
    """The job that says how the run stands; of equals the last, which is the furthest."""
    jobs = [view.state.jobs[job] for job in run.jobs]
    first = min(_TELLING.index(job.state) for job in jobs)
    return [job for job in jobs if _TELLING.index(job.state) == first][-1]


def where(place: Place | None) -> str:
    if place is None:
        return ""
    if len(place.nodes) <= _MOST_NODES_NAMED:
        return str(place)
    gpus = sum(gpus for _, gpus in place.nodes)
    return f"{place.site}: {len(place.nodes)} nodes, {gpus} GPUs"


def why_not(state: State, job: Job) -> str:
    """Why a job does not run, in a few words; the same reason that `explain` names."""
    if job.asked == "pause" and job.state in (JobState.PAUSED, JobState.PAUSING):
        return "asked to pause"
    if job.state not in (JobState.WAITING, JobState.PAUSED):
        return ""
    against = [verdict for verdict in job.verdicts if verdict.outcome in (Outcome.WAIT, Outcome.REFUSE)]
    verdict = dominant(tuple(against))
    if verdict is None:
        return _behind(state, job)
    if verdict.rule == "scaling.waking":
        return f"waits for {verdict.subject} to wake"
    short = next(
        (
            format_named(name, value)
            for name, value in verdict.numbers.items()
            if name.startswith("short_by_")
        ),
        "",
    )
    return f"{verdict.rule} {verdict.subject}" + (f" {short} short" if short else "")


def _behind(state: State, job: Job) -> str:
    """Nothing is asked of a job while its shape is known to fit nowhere, as one before it found."""
    shape = job.remainder.shape
    line = state.waiting.get(shape) if job.state is JobState.WAITING else None
    first = state.jobs[line[0][2]] if line else job
    if first.id == job.id:
        return (
            f"no place yet for its {format_named('gpus', job.request.gpus)}" if shape in state.stuck else ""
        )
    is_own = first.request.project == job.request.project  # of others no names are told
    gpus = format_named("gpus", job.request.gpus)
    return f"behind {first.id}" if is_own else f"behind a job of {gpus} that came first"


def progress(job: Job) -> str:
    if not job.step:
        return ""
    return f"{job.step}/{job.total}" if job.total else f"step {job.step}"


def mode(job: Job) -> str:
    """What it runs under: caps and smaller batches."""
    parts = [f"cap {format_share(job.power_fraction)}"] if job.power_fraction < 1 else []
    if job.in_flight_fraction < 1:
        parts.append(f"in flight {format_share(job.in_flight_fraction)}")
    return ", ".join(parts)
