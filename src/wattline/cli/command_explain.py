"""The explain command: why does a job wait, why did it move, and what would change that, at what price?

With a time it answers as of then; with another policy it says where that one would have decided otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from wattline.cli.explain_text import show_explained
from wattline.cli.finding import View, find_jobs, open_view
from wattline.cli.printing import iso, plain, print_json, stdout_console
from wattline.cli.standing import state_of
from wattline.cli.story import Entry, tell_story, why_moved
from wattline.control import Deciders, look_ahead
from wattline.policy import Eta, Explanation, KeptPlace, explain
from wattline.spec import Policy
from wattline.state import Job, Noticed, Snapshot

# Somebody waits for the answer.
_FORECAST_SECONDS = 2.0


def explain_job(name: str | None, *, as_json: bool) -> int:
    with open_view() as view:
        run, jobs = find_jobs(view.state, name)
        whole_run = name is None or name == run.run
        policy = view.session.policy()
        _look_ahead(view, policy, jobs)
        deciders = Deciders(view.session.documents)
        explained = [explain(*deciders.standpoint(view.state, view.at, job), job.id) for job in jobs]
        story = tell_story(view, run, jobs)
        if not as_json:
            show_explained(stdout_console(), view, run, jobs, explained, story)
        elif whole_run:
            print_json(
                {
                    "run_id": run.run,
                    "state": state_of(view, run),
                    "as_of": iso(view.at),
                    "jobs": [describe_explained(each, story) for each in explained],
                    "history": [describe_entry(entry) for entry in story],
                }
            )
        else:
            print_json({**describe_explained(explained[0], story), "as_of": iso(view.at)})
    return 0


def _look_ahead(view: View, policy: Policy, jobs: Iterable[Job]) -> None:
    """Forecast here where nobody conducts, or where who does has not yet; nothing of it is written down."""
    snapshot = Snapshot(view.state, view.at)
    awaited = [job.id for job in jobs if job.will_start]
    known = view.writer is not None and all(snapshot.expected(job_id) is not None for job_id in awaited)
    if not awaited or known:
        return
    from wattline.twin.forecast import TwinForecaster

    found = look_ahead(TwinForecaster(budget_seconds=_FORECAST_SECONDS), view.state, policy, view.at)
    if isinstance(found, Noticed):
        sys.stderr.write(f"wattline: {plain(found.say)}\n")
    elif found is not None:
        view.state.fold([found])


def describe_explained(explained: Explanation, story: list[Entry]) -> dict[str, object]:
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


def _describe_eta(eta: Eta | None) -> dict[str, object] | None:
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


def _describe_kept(kept: KeptPlace | None) -> dict[str, object] | None:
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


def describe_entry(entry: Entry) -> dict[str, object]:
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
