"""Homes: at which site would a job rather be, for what lies there already?"""

from __future__ import annotations

from wattline.state import Job, Snapshot


def home_of(draft: Snapshot, job: Job) -> str | None:
    """Its checkpoint's site, else that of the phase before it."""
    if job.saved is not None:
        return job.saved.site
    for earlier in job.request.after:
        before = draft.jobs.get(earlier)
        if before is not None and before.place is not None:
            return before.place.site
    return None
