"""Reach: can what a job would go on from be had?"""

from __future__ import annotations

import msgspec

from wattline.state import Job, Snapshot, Verdict


def judge_reach(draft: Snapshot, job: Job) -> Verdict | None:
    """A job whose newest checkpoint is at a site that is cut off waits for it; None: it can be had."""
    site = draft.stranded_at(job)
    if not site:
        return None
    return msgspec.structs.replace(Verdict.wait("sites.reach", site, f"{site} is heard again"), job=job.id)
