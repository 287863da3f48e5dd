"""Reach: can what a job would go on from be had, and where?"""

from __future__ import annotations

import msgspec

from wattline.state import Job, Place, Snapshot, Verdict

_TRIED_AGAIN_AFTER_SECONDS = 600.0


def judge_reach(draft: Snapshot, job: Job) -> Verdict | None:
    """A job whose newest checkpoint is at a site that is cut off waits for it; None: it can be had."""
    site = draft.stranded_at(job)
    if not site:
        return None
    verdict = Verdict.wait("sites.reach", site, f"{site} is heard again")
    return msgspec.structs.replace(verdict, job=job.id, say="its newest checkpoint is there")


def sites_out_of_reach(draft: Snapshot, job: Job) -> dict[str, float]:
    """Sites where a job's checkpoint could not be had lately, and when each is tried again.

    That it could not be had where it was saved keeps it from nowhere; nor does anything once a person wants
    it to go on.
    """
    home = job.saved.site if job.saved is not None else ""
    return {
        site: at + _TRIED_AGAIN_AFTER_SECONDS
        for site, at in job.unreached
        if home not in ("", site) and at > job.resumed_at and draft.at < at + _TRIED_AGAIN_AFTER_SECONDS
    }


def judge_fetching(draft: Snapshot, job: Job, place: Place) -> Verdict | None:
    """A job does not begin where its checkpoint could just not be had; None: nothing is known against it."""
    again_at = sites_out_of_reach(draft, job).get(place.site) if job.unreached else None
    if again_at is None or job.saved is None:
        return None
    say = f"it lies at {job.saved.site}, and could not be fetched"
    change, seconds = f"room at {job.saved.site}", again_at - draft.at
    verdict = Verdict.wait("sites.fetch", place.site, change, tried_again_in_seconds=seconds)
    return msgspec.structs.replace(verdict, job=job.id, say=say)
