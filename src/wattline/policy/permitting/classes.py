"""Classes: may a class take more GPUs, and does it leave those that are kept for others?"""

from __future__ import annotations

from wattline.spec.policy import Policy
from wattline.state import JobRequest, NodeMode, Snapshot, Verdict


def judge_class(draft: Snapshot, policy: Policy, request: JobRequest) -> list[Verdict]:
    """What a class may hold at once, and what every other must leave free for it."""
    if not policy.limits_classes or not request.gpus:
        return []
    verdicts = []
    name = request.scheduling_class
    known = policy.classes.get(name)
    if known is not None and known.max_gpus is not None:
        verdicts.append(_judge("class.gpus", name, request.gpus, known.max_gpus - draft.class_gpus(name)))
    kept = {
        other: max(0, one.keeps_free - draft.class_gpus(other))
        for other, one in policy.classes.items()
        if one.keeps_free and other != name
    }
    most = max(kept, key=lambda other: kept[other], default="")
    if most and kept[most]:
        pools, clouds = draft.plant.pools, draft.plant.clouds
        free = sum([draft.free_in(pool) for pool, (site, _) in enumerate(pools) if site not in clouds])
        free += sum([draft.plant.spots[node].node.gpus for node in draft.resting.modes[NodeMode.ASLEEP]])
        verdicts.append(_judge("class.kept_free", most, request.gpus, free - sum(kept.values())))
    return verdicts


def _judge(rule: str, subject: str, asked: int, left: int) -> Verdict:
    numbers = {"asked_gpus": float(asked), "left_gpus": float(max(0, left))}
    if asked <= left:
        return Verdict.allow(rule, subject, **numbers)
    change = "wait until others of it have ended" if rule == "class.gpus" else "wait until more is free"
    return Verdict.wait(rule, subject, change, short_by_gpus=float(asked - max(0, left)), **numbers)
