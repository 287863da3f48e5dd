"""What came of a run: what ran, what it cost and what it lost?"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from wattline.plane.moments import iso
from wattline.plane.session import Session
from wattline.release import total_usage
from wattline.state import Ending, Job, Run, State


def describe_run(session: Session, run: Run) -> dict[str, object]:
    """The object that `wattline run --output json` prints."""
    assert session.state is not None
    state = session.state
    jobs = [state.jobs[job_id] for job_id in run.jobs]
    usage = total_usage(jobs)
    metered = any(
        past.place is not None and _is_metered(state, past.place.site) for job in jobs for past in job.past
    )
    release = next((dict(release) for release in state.releases.values() if release["run"] == run.run), None)
    if release is not None:
        release["at"] = iso(float(str(release["at"])))
    energy = usage.kwh if metered else None
    folder = results_folder(session, run)
    return {
        "run_id": run.run,
        "status": run.status,
        "say": run.say,
        "phases": [_describe_phase(job) for job in jobs],
        "manifest": {
            "path": str(session.objects.path(run.manifest)) if run.manifest else None,
            "sha256": run.manifest.removeprefix("sha256:") or None,
        },
        "checkpoints": [
            {
                "phase": job.request.phase,
                "step": job.saved.step,
                "site": job.saved.site,
                "digest": job.saved.digest,
            }
            for job in jobs
            if job.saved is not None
        ],
        "gates": [dict(gate) for gate in run.gates],
        "results": None if folder is None else str(folder),
        "release": release,
        "cost_usd": usage.usd,
        "energy_kwh": energy,
        "carbon_kg": usage.kg_co2e if metered else None,
        "gpu_hours": usage.gpu_hours,
        "lost_seconds": sum(lost_seconds(job) for job in jobs),
        "emulated": state.plant.facility.emulated,
        "not_estimated": [] if metered else ["energy_kwh", "carbon_kg"],
    }


def results_folder(session: Session, run: Run) -> Path | None:
    """Where the run's files lie: on the shelf if it was released, else where its last phase left them."""
    assert session.state is not None
    for release in session.state.releases.values():
        if release["run"] == run.run:
            current = session.shelf.current(str(release["name"]), str(release["channel"]))
            if current is not None and current.manifest == run.manifest:
                return session.shelf.path(current) / "artifacts"
    for job_id in reversed(run.jobs):
        job = session.state.jobs[job_id]
        if job.outputs:
            folder = session.home.attempt(job.request.run, job.request.phase, job.attempt) / "work" / "out"
            return folder if folder.is_dir() else None
    return None


def lost_seconds(job: Job) -> float:
    """Time between attempts (pausing, moving, restarting), and work that had to be done again."""
    began = [past for past in job.past if past.began_at is not None]
    gaps = 0.0
    for before, after in pairwise(began):
        assert after.began_at is not None
        gaps += max(0.0, after.began_at - before.ended_at)
        if before.ending is not Ending.PAUSED and before.began_at is not None:
            kept_at = before.began_at if before.kept_at is None else max(before.kept_at, before.began_at)
            gaps += before.ended_at - kept_at
    return gaps


def _describe_phase(job: Job) -> dict[str, object]:
    return {
        "phase": job.request.phase,
        "state": job.state,
        "mode": job.runs_as,
        "say": job.say,
        "steps": job.step,
        "attempts": [
            {
                "attempt": past.attempt,
                "site": past.place.site if past.place else None,
                "nodes": [name for name, _ in past.place.nodes] if past.place else [],
                "ending": past.ending,
                "say": past.say,
                "seconds": None if past.began_at is None else past.ended_at - past.began_at,
            }
            for past in job.past
        ],
        "outputs": job.outputs or None,
        "gpu_hours": job.usage.gpu_hours,
        "energy_kwh": job.usage.kwh,
        "carbon_kg": job.usage.kg_co2e,
        "cost_usd": job.usage.usd,
        "lost_seconds": lost_seconds(job),
    }


def _is_metered(state: State, site: str) -> bool:
    known = state.plant.sites.get(site)
    return known is not None and known.reads_gpus
