"""Shortfall: where a job fits nowhere, how far is it from fitting, and would it ever?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wattline.policy.headroom.power import headroom_of
from wattline.policy.permitting.permission import allowed_models, allowed_regions
from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.gang import Spread
from wattline.spec.policy import Policy
from wattline.state import ONE_NODE, JobRequest, ResourceKind, Snapshot, Verdict

# What another arrangement of the same GPUs may change.
_ARRANGED = frozenset({ResourceKind.RACK, ResourceKind.SUPPLY, ResourceKind.LOOP, "heat.throttle"})
_FAR = 1e6  # a place of which nothing is left


def distance(against: Sequence[Verdict]) -> float:
    """How far a place is from fitting: shortfalls relative to what was asked, summed."""
    total = 0.0
    for verdict in against:
        short = verdict.short_by
        asked = next((value for name, value in verdict.numbers.items() if name.startswith("asked_")), 1.0)
        total += 1.0 if short is None else min(_FAR, short[0] / max(asked, 1e-9))
    return total


def may_ever_fit(empty: Snapshot, policy: Policy, request: JobRequest, against: Sequence[Verdict]) -> bool:
    """Whether a job that found no place in an empty facility might have one that was not tried.

    Only a gang has more arrangements than are tried, and only power and heat depend on which one it is.
    """
    short = {verdict.rule for verdict in against if not verdict.allows}
    if not request.may_spread or not short <= _ARRANGED:
        return False
    headroom = headroom_of(empty, policy.thresholds)
    spread = Spread(snapshot=empty, thresholds=policy.thresholds, request=request, headroom=headroom)
    return spread.may_be_carried([pool for _, pool in pools_for(empty.plant, policy, request)], short)


def judge_existence(
    snapshot: Snapshot, policy: Policy, request: JobRequest, sites: Collection[str] | None
) -> Verdict:
    """Why there was no place to judge: GPUs, CPUs, models, residency or locality."""
    plant = snapshot.plant
    pools = sorted(pool for _, pool in pools_for(plant, policy, request, sites))
    if not pools:
        return _judge_kind(snapshot, policy, request)
    free = snapshot.most_free_in if request.locality in ONE_NODE else snapshot.free_in
    at_hand = max(free(pool) for pool in pools)  # no job is spread over sites, or over kinds of GPUs
    subject = ", ".join(dict.fromkeys(plant.pools[pool][0] for pool in pools))
    if at_hand >= request.gpus:
        rule = "cpus" if request.gpus == 0 else "locality"
        say = {"asked_cpus": request.cpus} if rule == "cpus" else {"asked_gpus": float(request.gpus)}
        return Verdict.wait(rule, subject, change="a job there ends", **say)
    return Verdict.wait(
        "gpus",
        subject,
        change="a job there ends",
        short_by_gpus=float(request.gpus - at_hand),
        asked_gpus=float(request.gpus),
        free_gpus=float(at_hand),
    )


def _judge_kind(snapshot: Snapshot, policy: Policy, request: JobRequest) -> Verdict:
    """No pool is of a kind that this job may use."""
    plant = snapshot.plant
    regions = {site.region for site in plant.sites.values()}
    wanted_regions = allowed_regions(request, policy)
    if wanted_regions is not None and not regions.intersection(wanted_regions):
        there = ", ".join(sorted(regions)) or "none"
        return Verdict.wait("residency", ", ".join(wanted_regions), change=f"this facility has {there}")
    models = allowed_models(request, policy)
    wanted = " or ".join(sorted(models)) if models else "any GPU"
    there = ", ".join(sorted({device for _, device in plant.pools if device})) or "none"
    return Verdict.wait("instance.type", wanted, change=f"this facility has {there}")
