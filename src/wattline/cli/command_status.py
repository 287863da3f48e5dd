"""The status command: what runs, what waits and why, and who conducts it; from the journal alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.cli.remote import find_server, path_part
from wattline.live import Home
from wattline.plane.finding import View, find_run, newest_first, open_if_any, open_view
from wattline.plane.moments import clock
from wattline.plane.standing import mode, progress, state_of, telling_job, where, why_not
from wattline.plane.status import describe_all, describe_one, describe_releases, nodes_at_rest
from wattline.state import ENDED, HOLDING, Ending, Job, JobState, Past, Run
from wattline.units import format_seconds

_STYLES = {
    "succeeded": "green",
    "released": "green",
    "running": "cyan",
    "starting": "cyan",
    "waiting": "yellow",
    "paused": "yellow",
    "pausing": "yellow",
    "awaiting approval": "yellow",
    "interrupted": "bold red",
    "failed": "red",
    "refused": "red",
    "cancelled": "red",
    "gates failed": "red",
    "not released": "red",
}


def show_status(run: str | None, *, as_json: bool) -> int:
    server = find_server()
    if server is not None:
        server.show(
            "/api/v1/status" if run is None else f"/api/v1/runs/{path_part('run', run)}", as_json=as_json
        )
        return 0
    if run is None:
        with open_if_any() as view:
            if as_json:
                print_json(describe_all(view, Home.find()))
            else:
                show_all(stdout_console(), view, Home.find())
        return 0
    with open_view() as view:
        found = find_run(view.state, run)
        if as_json:
            print_json(describe_one(view, found))
        else:
            show_one(stdout_console(), view, found)
    return 0


def show_all(
    console: Console, view: View | None, home: Home, may_see: Callable[[str], bool] = lambda _: True
) -> None:
    """All runs of the projects that whoever asks may see."""
    runs = [] if view is None else [run for run in newest_first(view.state) if may_see(run.project)]
    if not runs:
        whose = "run of this token's project" if view is not None and view.state.runs else "run"
        console.print(f"no {whose} was ever submitted in {home.root}")
    if view is None:
        return
    if runs:
        console.print(_table_of(view, runs))
    if releases := describe_releases(view, may_see):
        console.print()
        shelf = columns("release", "channel", "number", "run", "since")
        for release in releases:
            shelf.add_row(
                *(plain(str(release[name])) for name in ("name", "channel", "number", "run_id", "since"))
            )
        console.print(shelf)
    if nodes := nodes_at_rest(view):
        console.print("nodes: " + ", ".join(f"{count} {mode}" for mode, count in nodes.items()))
    _show_sites(console, view)
    _show_writer(console, view)


def _show_sites(console: Console, view: View) -> None:
    """Those that have an agent, and how they stand."""
    for record in view.state.sites.values():
        stands = Text(str(record.standing), style="" if record.takes_work else "yellow")
        console.print(
            Text.assemble(
                f"site {record.site}: ", stands, f" since {clock(record.since)}, {plain(record.say)}"
            )
        )


def _table_of(view: View, runs: Sequence[Run]) -> Table:
    table = columns("run", "phase", "progress", "where", "state")
    for run in runs:
        job = telling_job(view, run)
        done = progress(job) if run.ended_at is None else _phases_done(view, run)
        table.add_row(run.run, job.request.phase, done, where(job.place), _standing(view, run))
    return table


def _phases_done(view: View, run: Run) -> str:
    done = sum(view.state.jobs[job].state is JobState.SUCCEEDED for job in run.jobs)
    return f"{done}/{len(run.jobs)} phases"


def _standing(view: View, run: Run) -> Text:
    state, job = state_of(view, run), telling_job(view, run)
    reason = run.say if run.ended_at is not None else why_not(view.state, job) or mode(job)
    if state == "released":  # what was said was that somebody must approve it
        reason = ""
    text = Text(state, style=_STYLES.get(state, ""))
    return text.append(f": {plain(reason)}", style="none") if reason else text


def show_one(console: Console, view: View, run: Run) -> None:
    console.print(Text.assemble((run.run, "bold"), ": ", _standing(view, run)))
    console.print(
        f"pipeline {run.pipeline}, project {run.project}, submitted {clock(run.submitted_at)} by {run.actor}",
        style="dim",
    )
    console.print()
    table = columns("phase", "attempt", "where", "progress", "took", "state")
    for job_id in run.jobs:
        job = view.state.jobs[job_id]
        rows = list(_attempt_rows(view, job))
        for at, row in enumerate(rows or [("", "", "", "", _job_standing(view, job))]):
            table.add_row(job.request.phase if at == 0 else "", *row)
    console.print(table)
    for gate in run.gates:
        mark = {"pass": "✓", "fail": "✗"}.get(str(gate["outcome"]), "?")
        console.print(f"{mark} {gate['gate']} ({plain(str(gate['message']))})")
    _show_writer(console, view)


def _attempt_rows(view: View, job: Job) -> list[tuple[str, str, str, str, Text]]:
    rows = [
        (
            str(past.attempt),
            where(past.place),
            f"step {past.step}" if past.step else "",
            "" if past.began_at is None else format_seconds(past.ended_at - past.began_at),
            Text(_ending(past)),
        )
        for past in job.past
    ]
    ended = {past.attempt for past in job.past}
    if job.attempt and job.attempt not in ended:
        took = "" if job.started_at is None else format_seconds(view.at - job.started_at)
        rows.append((str(job.attempt), where(job.place), progress(job), took, _job_standing(view, job)))
    elif rows and job.state in (JobState.PAUSED, JobState.WAITING):
        rows.append(("", "", progress(job), "", _job_standing(view, job)))
    return rows


def _ending(past: Past) -> str:
    if past.ending is Ending.SUCCEEDED or not past.say:
        return str(past.ending)
    return f"{past.ending}: {plain(past.say)}"


def _job_standing(view: View, job: Job) -> Text:
    state = "interrupted" if job.state in HOLDING and view.writer is None else str(job.state)
    text = Text(state, style=_STYLES.get(state, ""))
    reason = why_not(view.state, job) or mode(job) or (job.say if job.state in ENDED else "")
    if job.state is JobState.BLOCKED:
        reason = "after " + ", ".join(earlier.rpartition("/")[2] for earlier in job.request.after)
    return text.append(f": {plain(reason)}", style="none") if reason else text


def _show_writer(console: Console, view: View) -> None:
    writer = view.writer
    if writer is not None:
        who = f"{writer.holder}, process {writer.process.pid} on {writer.process.hostname}"
        console.print(f"conducted by {plain(who)}", style="dim")
    elif any(run.ended_at is None for run in view.state.runs.values()):
        console.print("nobody conducts now; `wattline run --resume` goes on", style="dim")
