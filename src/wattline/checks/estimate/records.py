"""Records: what did earlier runs of a pipeline take, phase by phase?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wattline.state import Job, JobState, Place, Saved, State, Usage
from wattline.twin.remaining import worked_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One phase of one run that succeeded: what it took and did."""

    phase: str
    submitted_at: float
    ended_at: float
    seconds: float  # all attempts together
    gpus: int
    steps: int | None = None  # of its loop; None: it told none
    usage: Usage = Usage()
    it_kwh: float | None = None  # measured at its nodes, without cooling; None: nothing was
    place: Place | None = None
    saved: Saved | None = None  # its newest checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A run of which every phase succeeded."""

    run: str
    submitted_at: float
    ended_at: float
    records: tuple[Record, ...]
    after: Mapping[str, tuple[str, ...]]  # by phase, those that it waited for

    @property
    def usd(self) -> float:
        return sum(record.usage.usd for record in self.records)


def gather_runs(state: State, pipeline: str, at: float) -> list[RecordedRun]:
    """Those of a pipeline that had succeeded by then, in the order in which they ended."""
    found = []
    for run in state.runs.values():
        if run.pipeline != pipeline or not run.jobs:
            continue
        jobs = [state.jobs[job] for job in run.jobs]
        records = [record for job in jobs if (record := _record(job, state, at)) is not None]
        if len(records) == len(jobs):
            phase_of = {job.id: job.request.phase for job in jobs}
            found.append(
                RecordedRun(
                    run=run.run,
                    submitted_at=run.submitted_at,
                    ended_at=max(record.ended_at for record in records),
                    records=tuple(records),
                    after={
                        job.request.phase: tuple(phase_of[earlier] for earlier in job.request.after)
                        for job in jobs
                    },
                )
            )
    return sorted(found, key=lambda run: (run.ended_at, run.run))


def gather_records(state: State, pipeline: str, phase: str, at: float) -> list[Record]:
    """Those of a phase, also where a later phase of its run failed, in the order in which they ended."""
    found = [
        record
        for run in state.runs.values()
        if run.pipeline == pipeline
        for job in run.jobs
        if state.jobs[job].request.phase == phase
        and (record := _record(state.jobs[job], state, at)) is not None
    ]
    return sorted(found, key=lambda record: record.ended_at)


def _record(job: Job, state: State, at: float) -> Record | None:
    if job.state is not JobState.SUCCEEDED or job.ended_at is None or job.ended_at > at:
        return None
    place = job.place if job.place is not None and job.place.site in state.plant.sites else None
    it_kwh = job.usage.kwh / state.plant.sites[place.site].pue if place is not None else 0.0
    return Record(
        phase=job.request.phase,
        submitted_at=job.submitted_at,
        ended_at=job.ended_at,
        seconds=worked_seconds(job, job.ended_at),
        gpus=job.request.gpus,
        steps=job.total,
        usage=job.usage,
        it_kwh=it_kwh or None,
        place=place,
        saved=job.saved,
    )
