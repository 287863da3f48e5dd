"""How is a run told when it is over: what ran, why it moved, what it cost and what it lost?"""

from __future__ import annotations

from itertools import pairwise

from rich.console import Console
from rich.table import Table

from wattline.plane.session import Session
from wattline.plane.summary import lost_seconds, results_folder
from wattline.release import total_usage
from wattline.state import Job, Run, Usage
from wattline.units import format_seconds


def show_run(console: Console, session: Session, run: Run) -> None:
    """The closing table: what ran, why it moved, what it cost and what it lost."""
    assert session.state is not None
    state = session.state
    jobs = [state.jobs[job_id] for job_id in run.jobs]
    console.print(_title(run), style="bold", soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("phase", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    table.add_column("where", no_wrap=True)
    for name in ("energy", "carbon", "cost", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for job in jobs:
        table.add_row(
            job.request.phase, job.state, _route(job), *_figures(job.usage), _time(lost_seconds(job))
        )
    if len(jobs) > 1:
        lost = _time(sum(map(lost_seconds, jobs)))
        table.add_row("in all", "", "", *_figures(total_usage(jobs)), lost, style="bold")
    console.print(table)
    for job in jobs:
        for past, after in pairwise(job.past):
            if past.place and after.place and past.place.site != after.place.site:
                route = f"from {past.place.site} to {after.place.site} at step {past.step}"
                console.print(f"{job.request.phase} moved {route}: {past.say}")
    folder = results_folder(session, run)
    if folder is not None:
        console.print(f"results  {folder}", soft_wrap=True)
    if run.manifest:
        console.print(f"manifest {run.manifest}", style="dim", soft_wrap=True)
    if state.plant.facility.emulated:
        console.print("watts and temperatures are emulated from the CPU time really used", style="dim")


def _title(run: Run) -> str:
    return f"{run.run}: {run.status}" + (f" ({run.say})" if run.say else "")


def _figures(usage: Usage) -> tuple[str, str, str]:
    return f"{1000 * usage.kwh:.2f} Wh", f"{1000 * usage.kg_co2e:.2f} g", f"{usage.usd:.3f} USD"


def _time(seconds: float) -> str:
    return format_seconds(seconds) if seconds else "–"


def _route(job: Job) -> str:
    sites = [past.place.site for past in job.past if past.place is not None]
    route = [site for at, site in enumerate(sites) if at == 0 or sites[at - 1] != site]
    return " → ".join(route) or "nowhere"
