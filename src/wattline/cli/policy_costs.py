"""What does a change of policy cost? Recorded arrivals, played forward on the twin under both.

Every job comes when it came and asks for what it asked for; how long it works is what it took. A job that
never ran, or had not ended, is left out: nobody knows how long it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from wattline.cli.twin_progress import TwinProgress
from wattline.errors import WattlineError
from wattline.facility import Facility
from wattline.plane.session import Session
from wattline.spec import Policy
from wattline.state import JobRequest, RunSubmitted
from wattline.store.steps import read_steps
from wattline.twin.comparison import Comparison, compare
from wattline.twin.report import Report
from wattline.twin.run import BEGINS_AT, Glimpse, Setting, run
from wattline.twin.surroundings import Surroundings, surroundings_by_site
from wattline.twin.traces import TraceJob, trace_of
from wattline.twin.workload import Arrival, draw_utilisation

# Of what the twin compares, what a change of policy is judged by.
COSTS = (
    "useful_gpu_hours",
    "cost_usd",
    "energy_kwh",
    "carbon_kg",
    "wait_minutes.mean",
    "wait_minutes.p95",
    "jobs.completed",
    "jobs.refused",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What arrived here, ready to be played again."""

    facility: Facility
    surroundings: Mapping[str, Surroundings]
    jobs: Sequence[tuple[TraceJob, JobRequest]]
    begins_at: float
    left_out: int  # that nobody knows the length of
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Both policies beside each other, or why that could not be told."""

    comparison: Comparison | None
    jobs: int
    left_out: int
    doubts: tuple[str, ...]


def weigh_costs(
    session: Session,
    policies: Mapping[str, Policy],
    *,
    since: float | None,
    seeds: int,
    progress: TwinProgress,
) -> Costs:
    """Play each policy, by what it is called, with the same seeds; others are held against the first."""
    try:
        recorded = _read(session, since)
    except WattlineError as error:
        return Costs(comparison=None, jobs=0, left_out=0, doubts=(error.message,))
    if not recorded.jobs:
        doubt = "no job that was recorded since has ended"
        return Costs(comparison=None, jobs=0, left_out=recorded.left_out, doubts=(doubt,))
    reports = [
        _play(recorded, name, policy, seed, progress)
        for seed in range(seeds)
        for name, policy in policies.items()
    ]
    found = compare(reports)
    kept = tuple(contest for contest in found.metrics if contest.metric in COSTS)
    return Costs(
        comparison=msgspec.structs.replace(found, metrics=kept),
        jobs=len(recorded.jobs),
        left_out=recorded.left_out,
        doubts=recorded.doubts,
    )


def _read(session: Session, since: float | None) -> Recorded:
    assert session.state is not None
    trace, asked = trace_of(session.store.journal, str(session.home.root)), _requests(session)
    jobs = [(job, *asked[job.name]) for job in trace.jobs]
    chosen = [(job, request) for job, request, at in jobs if since is None or at >= since]
    facility = session.state.plant.facility
    around, doubts = _around(facility)
    return Recorded(
        facility=facility,
        surroundings=around,
        jobs=chosen,
        begins_at=asked[chosen[0][0].name][1] if chosen else BEGINS_AT,
        left_out=sum(1 for _, at in asked.values() if since is None or at >= since) - len(chosen),
        doubts=doubts,
    )


def _requests(session: Session) -> dict[str, tuple[JobRequest, float]]:
    """What each job asked for, and when."""
    found: dict[str, tuple[JobRequest, float]] = {}
    for _, record in read_steps(session.store.journal):
        for event in record.events:
            if isinstance(event, RunSubmitted):
                for request in event.jobs:
                    found.setdefault(request.job, (request, event.at))
    return found


def _around(facility: Facility) -> tuple[Mapping[str, Surroundings], tuple[str, ...]]:
    """A facility is kept without the series that it names: where they are not here, its constants count."""
    try:
        return surroundings_by_site(facility), ()
    except WattlineError as error:
        return {}, (f"prices, carbon and weather stay as its document says: {error.message}",)


def _play(recorded: Recorded, name: str, policy: Policy, seed: int, progress: TwinProgress) -> Report:
    setting = Setting(
        name="what was recorded",
        facility=recorded.facility,
        policy=policy,
        arrivals=lambda: _arrivals(recorded, seed),
        seed=seed,
        decided_by=name,
        surroundings=recorded.surroundings,
        begins_at=recorded.begins_at,
    )
    label, jobs = f"{name}, seed {seed}", len(recorded.jobs)

    def tell(glimpse: Glimpse) -> None:
        progress.tell(label, glimpse, jobs)

    report = run(setting, tell=tell).report
    progress.end(label)
    return report


def _arrivals(recorded: Recorded, seed: int) -> Iterator[Arrival]:
    first = recorded.jobs[0][0].arrives_seconds
    for job, request in recorded.jobs:
        yield Arrival(
            at=recorded.begins_at + job.arrives_seconds - first,
            # It arrives once it could run: nothing is left to come after.
            request=msgspec.structs.replace(request, run=request.job, after=()),
            work_seconds=job.work_seconds,
            utilisation=draw_utilisation(seed, job.name),
        )
