"""The status command: what runs, what waits and why, and who conducts it; from the journal alone."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from wattline.cli.finding import View, find_run, newest_first, open_if_any, open_view
from wattline.cli.printing import clock, columns, iso, plain, print_json, stdout_console
from wattline.cli.standing import mode, progress, state_of, telling_job, where, why_not
from wattline.live import Home
from wattline.state import ENDED, HOLDING, Ending, Job, JobState, NodeMode, Past, Run
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
    if run is None:
        with open_if_any() as view:
            _show_all(view, as_json=as_json)
        return 0
    with open_view() as view:
        found = find_run(view.state, run)
        if as_json:
            phases = [_describe_phase(view.state.jobs[job]) for job in found.jobs]
            print_json(
                {
                    "home": str(view.session.home.root),
                    "writer": _describe_writer(view),
                    **_describe(view, found),
                    "phases": phases,
                }
            )
        else:
            _show_one(stdout_console(), view, found)
    return 0


def _show_all(view: View | None, *, as_json: bool) -> None:
    runs = newest_first(view.state) if view is not None else []
    if as_json:
        print_json(
            {
                "home": str(Home.find().root),
                "writer": None if view is None else _describe_writer(view),
                "runs": [_describe(view, run) for run in runs if view is not None],
                "releases": [] if view is None else _describe_releases(view),
                **({"nodes": nodes} if view is not None and (nodes := _nodes_at_rest(view)) else {}),
            }
        )
        return
    console = stdout_console()
    if view is None or not runs:
        console.print(f"no run was ever submitted in {Home.find().root}")
        return
    table = columns("run", "phase", "progress", "where", "state")
    for run in runs:
        job = telling_job(view, run)
        done = progress(job) if run.ended_at is None else _phases_done(view, run)
        table.add_row(run.run, job.request.phase, done, where(job.place), _standing(view, run))
    console.print(table)
    if view.state.releases:
        console.print()
        shelf = columns("release", "channel", "number", "run", "since")
        for release in _describe_releases(view):
            shelf.add_row(
                *(plain(str(release[name])) for name in ("name", "channel", "number", "run_id", "since"))
            )
        console.print(shelf)
    if nodes := _nodes_at_rest(view):
        console.print("nodes: " + ", ".join(f"{count} {mode}" for mode, count in nodes.items()))
    _show_writer(console, view)


def _nodes_at_rest(view: View) -> dict[str, int]:
    """How many sleep or wake, where any do."""
    modes = view.state.resting.modes
    return {mode.value: len(nodes) for mode, nodes in modes.items() if nodes and mode is not NodeMode.AWAKE}


def _describe_releases(view: View) -> list[dict[str, object]]:
    """What each channel holds now, with where its files are."""
    described = []
    for known in view.state.releases.values():
        name, channel = str(known["name"]), str(known["channel"])
        current = view.session.shelf.current(name, channel)
        path = view.session.shelf.path(current) if current is not None else None
        described.append(
            {
                "name": name,
                "channel": channel,
                "number": known["number"],
                "run_id": known["run"],
                "by": known["by"],
                "since": iso(float(str(known["at"]))),
                "path": None if path is None else str(path),
            }
        )
    return described


def _phases_done(view: View, run: Run) -> str:
    done = sum(view.state.jobs[job].state is JobState.SUCCEEDED for job in run.jobs)
    return f"{done}/{len(run.jobs)} phases"


def _standing(view: View, run: Run) -> Text:
    state, job = state_of(view, run), telling_job(view, run)
    reason = run.say if run.ended_at is not None else why_not(job) or mode(job)
    if state == "released":  # what was said was that somebody must approve it
        reason = ""
    text = Text(state, style=_STYLES.get(state, ""))
    return text.append(f": {plain(reason)}", style="none") if reason else text


def _show_one(console: Console, view: View, run: Run) -> None:
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
    reason = why_not(job) or mode(job) or (job.say if job.state in ENDED else "")
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


def _describe_writer(view: View) -> dict[str, object] | None:
    writer = view.writer
    if writer is None:
        return None
    return {
        "holder": writer.holder,
        "hostname": writer.process.hostname,
        "pid": writer.process.pid,
        "epoch": writer.epoch,
        "expires_at": iso(writer.expires_at),
    }


def _describe(view: View, run: Run) -> dict[str, object]:
    job = telling_job(view, run)
    return {
        "run_id": run.run,
        "pipeline": run.pipeline,
        "project": run.project,
        "submitted_by": run.actor,
        "submitted_at": iso(run.submitted_at),
        "ended_at": iso(run.ended_at),
        "state": state_of(view, run),
        "status": run.status,
        "say": run.say,
        "phase": job.request.phase,
        "site": job.place.site if job.place else None,
        "nodes": [name for name, _ in job.place.nodes] if job.place else [],
        "step": job.step,
        "total": job.total,
        "waiting_for": why_not(job) or None,
    }


def _describe_phase(job: Job) -> dict[str, object]:
    return {
        "phase": job.request.phase,
        "state": job.state,
        "say": job.say,
        "since": iso(job.since),
        "step": job.step,
        "total": job.total,
        "loss": job.loss,
        "power_fraction": job.power_fraction,
        "in_flight_fraction": job.in_flight_fraction,
        "attempt": job.attempt,
        "waiting_for": why_not(job) or None,
        "attempts": [
            {
                "attempt": past.attempt,
                "site": past.place.site if past.place else None,
                "nodes": [name for name, _ in past.place.nodes] if past.place else [],
                "ending": past.ending,
                "say": past.say,
                "step": past.step,
                "began_at": iso(past.began_at),
                "ended_at": iso(past.ended_at),
            }
            for past in job.past
        ],
    }
