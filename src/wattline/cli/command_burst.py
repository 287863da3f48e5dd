"""The burst command: let a job that waits go to a cloud now, whatever waiting would save."""

from __future__ import annotations

import time

from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import say_here
from wattline.errors import RefusedError
from wattline.plane.finding import find_jobs, open_view
from wattline.plane.session import user
from wattline.plane.telling import tell
from wattline.state import Asked, JobState


def burst_jobs(name: str | None, *, as_json: bool) -> int:
    say_here()
    with open_view() as view:
        clouds = view.state.plant.clouds
        if not clouds:
            raise RefusedError(
                f"facility {view.state.plant.facility.name} has no cloud region",
                hint="a site with `cloud:` is one; see the facility's documentation",
            )
        if view.session.policy().bursting.jobs == "none":
            raise RefusedError("the policy lets no job burst", hint="its bursting.jobs is none")
        _, jobs = find_jobs(view.state, name)
        waiting = [job for job in jobs if job.state is JobState.WAITING and job.request.gpus]
        for job in waiting:
            asked = Asked(at=time.time(), actor=user(), project=job.request.project, job=job.id, want="burst")
            tell(view.session, asked)
        if as_json:
            print_json({"jobs": [job.id for job in waiting], "regions": list(clouds)})
            return 0
        console = stdout_console()
        for job in waiting:
            console.print(plain(f"{job.id} goes to a cloud as soon as one takes it: {', '.join(clouds)}"))
        if not waiting:
            console.print("no job of it waits for GPUs")
    return 0
