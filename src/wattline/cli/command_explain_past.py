"""The explain command with a time: what was decided for a job then, and what would another policy have?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.console import Console

from wattline.cli.command_explain import describe_entry, describe_explained
from wattline.cli.explain_text import show_explained
from wattline.cli.finding import View, find_jobs, open_view
from wattline.cli.past import Past, ask_since, go_back, read_moment
from wattline.cli.printing import clock, iso, plain, print_json, stdout_console
from wattline.cli.standing import telling_job
from wattline.cli.story import WAITS, Entry, tell_story
from wattline.control import Difference, Tally
from wattline.errors import UnavailableError, UsageError
from wattline.policy import Explanation, explain
from wattline.spec import Policy, read_policy
from wattline.state import Job, Run, Snapshot

_IF = "policy="


@dataclass(frozen=True, slots=True, kw_only=True)
class _Otherwise:
    """What another policy makes of the same past."""

    policy: Policy
    explained: tuple[Explanation, ...]
    tally: Tally
    own: Difference | None  # the first about the jobs that were asked about


def explain_past(name: str | None, *, at: str | None, otherwise: str | None, as_json: bool) -> int:
    """Without a time: as of the last word of the journal."""
    other = None if otherwise is None else _read_otherwise(otherwise)
    with open_view() as view:
        moment = view.at if at is None else read_moment(at)
        past = go_back(view.session, moment)
        run, jobs = _find(view, past, name, moment)
        then = replace(view, state=past.state, at=past.at)
        snapshot = Snapshot(past.state, past.at)
        explained = [explain(snapshot, past.policy, job.id) for job in jobs]
        story = [entry for entry in tell_story(then, run, jobs) if entry.at <= moment]
        changed = None if other is None else _ask(view, past, other, run, jobs)
        if as_json:
            whole_run = name is None or name == run.run
            print_json(_describe(then, past, run, explained, story, changed, whole_run=whole_run))
            return 0
        console = stdout_console()
        console.print(
            f"as of {clock(past.at)} (record {past.seq}), by policy {past.policy.policy}", style="dim"
        )
        show_explained(console, then, run, jobs, explained, story, is_past=True)
        if changed is not None:
            _show_otherwise(console, changed)
    return 0


def _read_otherwise(text: str) -> Policy:
    if not text.startswith(_IF) or text == _IF:
        raise UsageError(f"--if {text[:100]!r} is not known", hint="write it as --if policy=FILE")
    return read_policy(text.removeprefix(_IF))


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


def _ask(view: View, past: Past, policy: Policy, run: Run, jobs: tuple[Job, ...]) -> _Otherwise:
    after_seq = int(run.documents.get("after_seq", "0"))
    chosen = {job.id for job in jobs}
    tally, own = Tally(asked=chosen), None
    for difference in ask_since(view.session, policy, tally, after_seq=after_seq, at=past.at):
        if own is None and difference.job in chosen:
            own = difference
    snapshot = Snapshot(past.state, past.at)
    return _Otherwise(
        policy=policy,
        explained=tuple(explain(snapshot, policy, job.id) for job in jobs),
        tally=tally,
        own=own,
    )


def _describe(
    then: View,
    past: Past,
    run: Run,
    explained: list[Explanation],
    story: list[Entry],
    changed: _Otherwise | None,
    *,
    whole_run: bool,
) -> dict[str, object]:
    stood: dict[str, object] = {
        "as_of": iso(past.at),
        "record": past.seq,
        "policy": past.policy.policy,
        "if": None if changed is None else _describe_otherwise(changed),
    }
    jobs = [
        {**describe_explained(each, story), "decided": _describe_last(story, each.job)} for each in explained
    ]
    if not whole_run:
        return {**jobs[0], **stood}
    history = [describe_entry(entry) for entry in story]
    state = run.status if run.ended_at is not None else telling_job(then, run).state
    return {"run_id": run.run, "state": state, "jobs": jobs, "history": history, **stood}


def _describe_last(story: list[Entry], job: str) -> dict[str, object] | None:
    """The last that was decided about a job."""
    own = [entry for entry in story if entry.job == job and (entry.action is not None or entry.what == WAITS)]
    return describe_entry(own[-1]) if own else None


def _describe_otherwise(changed: _Otherwise) -> dict[str, object]:
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


def _show_otherwise(console: Console, changed: _Otherwise) -> None:
    console.print()
    console.print(plain(f"under policy {changed.policy.policy}"), style="bold")
    if not changed.tally.count:
        console.print("every decision up to then would have been the same")
        return
    if changed.own is not None:
        console.print(plain(f"first differs at {say_difference(changed.own)}"))
    else:
        console.print("every decision about it up to then would have been the same")
    first = changed.tally.first[0]
    if changed.own is None or first.seq < changed.own.seq:
        console.print(plain(f"of all jobs, first at {say_difference(first)}"))
    console.print(
        "asked about what was recorded: from the first difference on, history would have gone another way",
        style="dim",
    )


def say_difference(difference: Difference) -> str:
    """A difference on a line."""
    record = f" (record {difference.seq})" if difference.seq else ""
    rule = f" [{difference.rule}]" if difference.rule and difference.rule not in difference.say else ""
    return f"{clock(difference.at)}{record}: {difference.say}{rule}"
