"""The explain command: why does a job wait, why did it move, and what would change that, at what price?"""

from __future__ import annotations

from wattline.cli.explain_text import show_explained
from wattline.cli.finding import find_jobs, open_view
from wattline.cli.printing import iso, print_json, stdout_console
from wattline.cli.standing import state_of
from wattline.cli.story import Entry, tell_story, why_moved
from wattline.policy import Explanation, explain
from wattline.state import Snapshot


def explain_job(name: str | None, *, as_json: bool) -> int:
    with open_view() as view:
        run, jobs = find_jobs(view.state, name)
        whole_run = name is None or name == run.run
        snapshot, policy = Snapshot(view.state, view.at), view.session.policy()
        explained = [explain(snapshot, policy, job.id) for job in jobs]
        story = tell_story(view, run, jobs)
        if not as_json:
            show_explained(stdout_console(), view, run, jobs, explained, story)
        elif whole_run:
            print_json(
                {
                    "run_id": run.run,
                    "state": state_of(view, run),
                    "as_of": iso(view.at),
                    "jobs": [_describe(each, story) for each in explained],
                    "history": [_describe_entry(entry) for entry in story],
                }
            )
        else:
            print_json({**_describe(explained[0], story), "as_of": iso(view.at)})
    return 0


def _describe(explained: Explanation, story: list[Entry]) -> dict[str, object]:
    return {
        "job": explained.job,
        "state": explained.state,
        "say": explained.say,
        "blocked_by": explained.blocked_by,
        "eta": explained.eta,
        "options": [
            {
                "change": option.change,
                "starts_at": iso(option.starts_at),
                "cost_delta_usd": option.cost_delta_usd,
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
        "history": [_describe_entry(entry) for entry in story if entry.job in ("", explained.job)],
    }


def _describe_entry(entry: Entry) -> dict[str, object]:
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
