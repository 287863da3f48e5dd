"""How does everything stand: all runs, or one with its phases and attempts, and who conducts them?"""

from __future__ import annotations

from collections.abc import Callable

from wattline.live import Home
from wattline.plane.finding import View, newest_first
from wattline.plane.moments import iso
from wattline.plane.standing import state_of, telling_job, why_not
from wattline.plane.told import (
    AgentStanding,
    PhaseStanding,
    ReleaseStanding,
    RunStanding,
    RunStatus,
    Status,
    Writer,
)
from wattline.state import Job, NodeMode, Run, SiteRecord, State

MaySee = Callable[[str], bool]
"""Whether a project is any business of whoever asks."""


def _all(_project: str) -> bool:
    return True


def describe_all(view: View | None, home: Home, may_see: MaySee = _all) -> Status:
    """All runs, newest first, with what is released and which nodes rest; None: nothing was ever run."""
    runs = [] if view is None else [run for run in newest_first(view.state) if may_see(run.project)]
    told: Status = {
        "home": str(home.root),
        "writer": None if view is None else describe_writer(view),
        "runs": [] if view is None else [describe_standing(view, run) for run in runs],
        "releases": [] if view is None else describe_releases(view, may_see),
    }
    if view is not None and (nodes := nodes_at_rest(view)):
        told["nodes"] = nodes
    if view is not None and view.state.sites:
        told["sites"] = describe_sites(view)
    return told


def describe_sites(view: View) -> list[AgentStanding]:
    """Sites that have an agent."""
    return [describe_agent(record) for record in view.state.sites.values()]


def describe_agent(record: SiteRecord) -> AgentStanding:
    return {
        "site": record.site,
        "standing": record.standing,
        "since": iso(record.since),
        "epoch": record.epoch,
        "agent": record.agent,
        "say": record.say,
    }


def describe_one(view: View, run: Run) -> RunStatus:
    """A run with its phases and their attempts."""
    return {
        "home": str(view.session.home.root),
        "writer": describe_writer(view),
        **describe_standing(view, run),
        "phases": [describe_phase(view.state, view.state.jobs[job]) for job in run.jobs],
    }


def describe_standing(view: View, run: Run) -> RunStanding:
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
        "waiting_for": why_not(view.state, job) or None,
    }


def describe_phase(state: State, job: Job) -> PhaseStanding:
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
        "waiting_for": why_not(state, job) or None,
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


def describe_writer(view: View) -> Writer | None:
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


def describe_releases(view: View, may_see: MaySee = _all) -> list[ReleaseStanding]:
    """What each channel holds now, with where its files are."""
    described: list[ReleaseStanding] = []
    for known in view.state.releases.values():
        if not may_see(view.state.runs[str(known["run"])].project):
            continue
        name, channel = str(known["name"]), str(known["channel"])
        current = view.session.shelf.current(name, channel)
        path = view.session.shelf.path(current) if current is not None else None
        described.append(
            {
                "name": name,
                "channel": channel,
                "number": int(str(known["number"])),
                "run_id": str(known["run"]),
                "by": str(known["by"]),
                "since": iso(float(str(known["at"]))),
                "path": None if path is None else str(path),
            }
        )
    return described


def nodes_at_rest(view: View) -> dict[str, int]:
    """How many sleep or wake, where any do."""
    modes = view.state.resting.modes
    return {mode.value: len(nodes) for mode, nodes in modes.items() if nodes and mode is not NodeMode.AWAKE}
