"""Relief: how much does a rung free of what is short, and how much is on its way already?"""

from __future__ import annotations

from wattline.spec.ladder import Rung, RungKind
from wattline.spec.policy import Policy
from wattline.state import Job, Snapshot, claim_of


def ladder_of(job: Job, policy: Policy) -> tuple[Rung, ...]:
    """The owner's ladder, or the class's, or the policy's."""
    if job.request.ladder is not None:
        return job.request.ladder
    known = policy.classes.get(job.request.scheduling_class)
    if known is not None and known.under_pressure:
        return tuple(rung.rung() for rung in known.under_pressure)
    return tuple(rung.rung() for rung in policy.under_pressure)


def predict_relief(snapshot: Snapshot, policy: Policy, job: Job, index: int | None, subject: str) -> float:
    """What a rung of a job's ladder frees of one resource, by its claim: the most it could be."""
    ladder = ladder_of(job, policy)
    resource = snapshot.plant.resource_number.get(subject)
    if index is None or not 0 <= index < len(ladder) or resource is None or job.place is None:
        return 0.0
    rung = ladder[index]
    full = dict(claim_of(job.request, job.place, snapshot.plant).amounts).get(resource, 0)
    if rung.kind is RungKind.CAP_POWER:
        capped = claim_of(job.request, job.place, snapshot.plant, rung.amount)
        return float(full - dict(capped.amounts).get(resource, 0))
    return full * (1 - rung.amount) if rung.kind is RungKind.SHRINK_BATCH else float(full)


def relief_underway(snapshot: Snapshot, policy: Policy, subject: str) -> float:
    """What jobs there have been asked to free so lately that no meter can show it yet."""
    resource = snapshot.plant.resource_number.get(subject)
    if resource is None:
        return 0.0
    jobs = [snapshot.job(job_id) for job_id in sorted(snapshot.jobs_on(resource))]
    return sum(
        predict_relief(snapshot, policy, job, job.rung, subject)
        for job in jobs
        if job.rung >= 0 and snapshot.at - job.rung_at < policy.thresholds.settle
    )
