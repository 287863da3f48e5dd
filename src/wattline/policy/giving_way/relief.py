"""Relief: how much does a rung free of what is short, and how much is on its way already?"""

from __future__ import annotations

from wattline.policy.giving_way.pressure import read_gpu_watts
from wattline.policy.headroom.carrying import part_carried
from wattline.spec.ladder import Rung, RungKind
from wattline.spec.policy import Policy
from wattline.state import Claim, Job, ResourceKind, Snapshot, claim_of

_NOT_IN_WATTS = frozenset({ResourceKind.LINK, ResourceKind.STORAGE})


def ladder_of(job: Job, policy: Policy) -> tuple[Rung, ...]:
    """The owner's ladder, or the class's, or the policy's."""
    if job.request.ladder is not None:
        return job.request.ladder
    known = policy.classes.get(job.request.scheduling_class)
    if known is not None and known.under_pressure:
        return known.ladder
    return policy.ladder


def predict_relief(snapshot: Snapshot, policy: Policy, job: Job, index: int | None, subject: str) -> float:
    """What a rung of a job's ladder frees of one resource: of watts by what meters say that it draws.

    A claim says the most that it could draw, of A and of B; to count on that would free too little.
    """
    ladder = ladder_of(job, policy)
    resource = snapshot.plant.resource_number.get(subject)
    if index is None or not 0 <= index < len(ladder) or resource is None or job.place is None:
        return 0.0
    rung, claim = ladder[index], claim_of(job.request, job.place, snapshot.plant, job.power_fraction)
    if snapshot.plant.kinds[resource] in _NOT_IN_WATTS or not claim.gpu_watts:
        held = float(dict(claim.amounts).get(resource, 0))
        if rung.kind is RungKind.CAP_POWER:
            return 0.0
        return held * (1 - rung.amount) if rung.kind is RungKind.SHRINK_BATCH else held
    freed = 0.0
    for node, gpus in claim.nodes:
        share = _share(snapshot, node, resource)
        if share:
            drawn = read_gpu_watts(snapshot, claim, node, policy.thresholds)
            freed += share * gpus * max(0.0, drawn - _watts_on(snapshot, node, drawn, rung))
    return freed


def predict_gpu_watts(snapshot: Snapshot, policy: Policy, claim: Claim, rung: Rung) -> float:
    """What the hungriest GPU of a job would draw on a rung."""
    return max(
        _watts_on(snapshot, node, read_gpu_watts(snapshot, claim, node, policy.thresholds), rung)
        for node, _ in claim.nodes
    )


def _watts_on(snapshot: Snapshot, node: int, drawn: float, rung: Rung) -> float:
    """What a GPU that draws so much would draw on a rung; what leaves, leaves it idle."""
    device = snapshot.plant.spots[node].node.device
    if device is None:
        return 0.0
    if rung.kind is RungKind.CAP_POWER:
        return min(drawn, max(device.least_limit_watts, rung.amount * device.limit_watts))
    if rung.kind is RungKind.SHRINK_BATCH:
        return device.idle_watts + rung.amount * max(0.0, drawn - device.idle_watts)
    return device.idle_watts


def _share(snapshot: Snapshot, node: int, resource: int) -> float:
    """How much of a node's watts a resource carries now."""
    spot = snapshot.plant.spots[node]
    if resource == spot.loop_resource:
        return 1.0
    return dict(spot.power).get(resource, 0.0) * part_carried(snapshot, node, resource)


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
