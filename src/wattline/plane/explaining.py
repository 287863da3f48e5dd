"""What is told of a job to somebody who asks why: its reason, its options, its history?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wattline.control import Deciders, look_ahead
from wattline.plane.finding import View, find_jobs
from wattline.plane.moments import iso
from wattline.plane.standing import state_of
from wattline.plane.story import Entry, tell_story, why_moved
from wattline.plane.told import EtaTold, Explained, ExplainedJob, ExplainedRun, HistoryEntry, ReservationTold
from wattline.policy import Eta, Explanation, KeptPlace, explain
from wattline.state import Job, Noticed, Run, Snapshot

# Somebody waits for the answer.
_FORECAST_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Why one job, or all jobs of a run, stand as they do."""

    run: Run
    jobs: tuple[Job, ...]
    explained: list[Explanation]
    story: list[Entry]
    is_whole_run: bool


def explain_jobs(view: View, name: str | None) -> Answer:
    run, jobs = find_jobs(view.state, name)
    deciders = Deciders(view.session.documents)
    return Answer(
        run=run,
        jobs=jobs,
        explained=[explain(*deciders.standpoint(view.state, view.at, job), job.id) for job in jobs],
        story=tell_story(view, run, jobs),
        is_whole_run=name is None or name == run.run,
    )


def look_ahead_for(view: View, jobs: Iterable[Job]) -> str:
    """Forecast here where nobody conducts, or where who does has not yet; returns what went wrong.

    Nothing of it is written down, but this view knows it from now on: it is not one to keep.
    """
    snapshot = Snapshot(view.state, view.at)
    awaited = [job.id for job in jobs if job.will_start]
    known = view.writer is not None and all(snapshot.expected(job_id) is not None for job_id in awaited)
    if not awaited or known:
        return ""
    from wattline.twin.forecast import TwinForecaster

    forecaster = TwinForecaster(budget_seconds=_FORECAST_SECONDS)
    found = look_ahead(forecaster, view.state, view.session.policy(), view.at)
    if isinstance(found, Noticed):
        return found.say
    if found is not None:
        view.state.fold([found])
    return ""


def describe_answer(view: View, answer: Answer) -> ExplainedJob | ExplainedRun:
    """One job as asked for, or the run with all of its jobs."""
    if not answer.is_whole_run:
        return {**describe_explained(answer.explained[0], answer.story), "as_of": iso(view.at)}
    return {
        "run_id": answer.run.run,
        "state": state_of(view, answer.run),
        "as_of": iso(view.at),
        "jobs": [describe_explained(each, answer.story) for each in answer.explained],
        "history": [describe_entry(entry) for entry in answer.story],
    }


def describe_explained(explained: Explanation, story: list[Entry]) -> Explained:
    return {
        "job": explained.job,
        "state": explained.state,
        "say": explained.say,
        "blocked_by": explained.blocked_by,
        "eta": _describe_eta(explained.eta),
        "reservation": _describe_kept(explained.kept),
        "options": [
            {
                "change": option.change,
                "starts_at": iso(option.starts_at),
                "cost_delta_usd": option.cost_delta_usd,
                "fields": option.fields,
            }
            for option in explained.options
        ],
        "verdicts": explained.verdicts,
        "moves": [
            {"at": iso(move.at), "from": origin, "to": move.site, "why": why}
            for move, origin, why in why_moved(
                [entry for entry in story if entry.job == explained.job], story
            )
        ],
        "not_estimated": explained.not_estimated,
        "history": [describe_entry(entry) for entry in story if entry.job in ("", explained.job)],
    }


def _describe_eta(eta: Eta | None) -> EtaTold | None:
    if eta is None:
        return None
    return {
        "p50": iso(eta.p50),
        "p90": iso(eta.p90),
        "by": iso(eta.by),
        "age_seconds": eta.age_seconds,
        "samples": eta.samples,
        "horizon_seconds": eta.horizon_seconds,
    }


def _describe_kept(kept: KeptPlace | None) -> ReservationTold | None:
    if kept is None:
        return None
    return {
        "holder": kept.holder,
        "project": kept.project,
        "is_own": kept.is_own,
        "made_at": iso(kept.made_at),
        "starts_at": iso(kept.starts_at),
        "place": str(kept.place),
        "gpus": kept.gpus,
        "free_gpus": kept.free_gpus,
        "leavers": kept.leavers,
        "because": kept.because,
    }


def describe_entry(entry: Entry) -> HistoryEntry:
    return {
        "at": iso(entry.at),
        "what": entry.what,
        "say": entry.say,
        "job": entry.job or None,
        "attempt": entry.attempt,
        "action": entry.action,
        "because": entry.because or None,
        "lost_gpu_seconds": entry.lost_gpu_seconds if entry.action else None,
        "verdicts": entry.verdicts,
    }
