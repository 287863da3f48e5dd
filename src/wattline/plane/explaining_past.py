"""What is told of a job as of an earlier time: what was decided then, and what would another policy have?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wattline.control import Difference, Tally
from wattline.errors import UnavailableError, UsageError
from wattline.plane.explaining import describe_entry, describe_explained
from wattline.plane.finding import View, find_jobs
from wattline.plane.moments import iso
from wattline.plane.past import Past, ask_since, go_back
from wattline.plane.standing import telling_job
from wattline.plane.story import WAITS, Entry, tell_story
from wattline.plane.told import HistoryEntry
from wattline.policy import Explanation, explain
from wattline.spec import Policy
from wattline.state import Job, Run, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Otherwise:
    """What another policy makes of the same past."""

    policy: Policy
    explained: tuple[Explanation, ...]
    tally: Tally
    own: Difference | None  # the first about the jobs that were asked about


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAnswer:
    """How one job, or all jobs of a run, stood after the last decision up to a time."""

    then: View
    past: Past
    run: Run
    jobs: tuple[Job, ...]
    explained: list[Explanation]
    story: list[Entry]
    otherwise: Otherwise | None
    is_whole_run: bool


def explain_jobs_then(view: View, name: str | None, moment: float, policy: Policy | None) -> PastAnswer:
    """`policy`: also what this one would have decided."""
    past = go_back(view.session, moment)
    run, jobs = _find(view, past, name, moment)
    then = replace(view, state=past.state, at=past.at)
    snapshot = Snapshot(past.state, past.at)
    return PastAnswer(
        then=then,
        past=past,
        run=run,
        jobs=jobs,
        explained=[explain(snapshot, past.policy, job.id) for job in jobs],
        story=[entry for entry in tell_story(then, run, jobs) if entry.at <= moment],
        otherwise=None if policy is None else _ask(view, past, policy, run, jobs),
        is_whole_run=name is None or name == run.run,
    )


def describe_past_answer(answer: PastAnswer) -> dict[str, object]:
    """As programs read it."""
    stood: dict[str, object] = {
        "as_of": iso(answer.past.at),
        "record": answer.past.seq,
        "policy": answer.past.policy.policy,
        "if": None if answer.otherwise is None else _describe_otherwise(answer.otherwise),
    }
    story, run = answer.story, answer.run
    jobs = [
        {**describe_explained(each, story), "decided": _describe_last(story, each.job)}
        for each in answer.explained
    ]
    if not answer.is_whole_run:
        return {**jobs[0], **stood}
    history = [describe_entry(entry) for entry in story]
    state = run.status if run.ended_at is not None else telling_job(answer.then, run).state
    return {"run_id": run.run, "state": state, "jobs": jobs, "history": history, **stood}


def describe_difference(difference: Difference) -> dict[str, object]:
    """A difference as programs read it."""
    return {
        "at": iso(difference.at),
        "record": difference.seq or None,
        "job": difference.job,
        "kind": difference.kind,
        "decided": difference.decided,
        "would": difference.would,
        "rule": difference.rule or None,
        "say": difference.say,
    }


def _find(view: View, past: Past, name: str | None, moment: float) -> tuple[Run, tuple[Job, ...]]:
    """Of what there was then; where there is such a job now, the error says when it came."""
    try:
        return find_jobs(past.state, name)
    except (UsageError, UnavailableError):
        run, jobs = find_jobs(view.state, name)
        came = iso(jobs[0].submitted_at)
        raise UsageError(
            f"{name or run.run} did not exist at {iso(moment)}: it was submitted at {came}",
            hint="name a later time",
        ) from None


def _ask(view: View, past: Past, policy: Policy, run: Run, jobs: tuple[Job, ...]) -> Otherwise:
    after_seq = int(run.documents.get("after_seq", "0"))
    chosen = {job.id for job in jobs}
    tally, own = Tally(asked=chosen), None
    for difference in ask_since(view.session, policy, tally, after_seq=after_seq, at=past.at):
        if own is None and difference.job in chosen:
            own = difference
    snapshot = Snapshot(past.state, past.at)
    return Otherwise(
        policy=policy,
        explained=tuple(explain(snapshot, policy, job.id) for job in jobs),
        tally=tally,
        own=own,
    )


def _describe_last(story: list[Entry], job: str) -> HistoryEntry | None:
    """The last that was decided about a job."""
    own = [entry for entry in story if entry.job == job and (entry.action is not None or entry.what == WAITS)]
    return describe_entry(own[-1]) if own else None


def _describe_otherwise(changed: Otherwise) -> dict[str, object]:
    return {
        "policy": changed.policy.policy,
        "jobs": [
            {
                "job": each.job,
                "say": each.say,
                "blocked_by": each.blocked_by,
                "verdicts": each.verdicts,
            }
            for each in changed.explained
        ],
        "differs": changed.own is not None,
        "first_difference": None if changed.own is None else describe_difference(changed.own),
        "first_difference_of_any_job": (
            describe_difference(changed.tally.first[0]) if changed.tally.first else None
        ),
        "differences": changed.tally.count,
    }
