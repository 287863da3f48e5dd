"""Power parts: what does each job of a site take of its bounds, and which caps could it have?

Worked out anew only for jobs that changed, or of which something else is read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wattline.facility import Device
from wattline.policy.appetite import Appetite, is_rigid, menu_for, read_appetite
from wattline.policy.dividing import Menu
from wattline.policy.power_bounds import Bound, shares_of
from wattline.spec.policy import Policy
from wattline.state import Claim, Job, JobState, Snapshot


class Part(NamedTuple):
    """A job that holds GPUs here."""

    job: Job
    device: Device
    appetite: Appetite
    bounds: tuple[tuple[int, float], ...]
    menu: Menu | None = None  # None: its cap is not moved now
    level: int = 0  # of its menu, that it has now
    leaves_watts: float | None = None  # above idle, once it has left; None: it stays

    @property
    def is_lasting(self) -> bool:
        """Whether it stays as it is for as long as neither the job nor what is read of it changes."""
        is_settled = self.appetite.is_read and not self.appetite.is_silent
        one_node = self.job.place is not None and len(self.job.place.nodes) == 1
        return self.menu is not None and is_settled and one_node

    @property
    def gpus(self) -> int:
        return self.job.request.gpus

    @property
    def whole(self) -> Menu:
        """All its levels, never off."""
        assert self.menu is not None
        return self.menu.part(0, len(self.menu.levels) - 1)

    @property
    def above_idle_watts(self) -> float:
        return self.gpus * max(0.0, self.appetite.counted - self.device.idle_watts)


_Remembered = tuple[Part, tuple[float, float] | None, int]


@dataclass(slots=True)
class _Known:
    """Parts as they were at the last look, with the reading that each was worked out from, and its node."""

    policy: Policy
    under: list[int | None]
    parts: dict[str, _Remembered]


def find_parts(
    draft: Snapshot,
    policy: Policy,
    site: str,
    bounds: Sequence[Bound],
    jobs: Sequence[Job],
    asked: Collection[str],
) -> list[Part]:
    """One part for each job, in the order of jobs; who was `asked` already is not moved."""
    under = [bound.resource for bound in bounds]
    known = draft.lasting.get((Part, site))
    before: dict[str, _Remembered] = {}
    if isinstance(known, _Known) and known.policy is policy and known.under == under:
        before = known.parts
    kept: dict[str, _Remembered] = {}
    parts: list[Part] = []
    for job in jobs:
        last = before.get(job.id)
        is_same = last is not None and last[0].job is job and job.id not in asked
        if last is not None and is_same and _still_reads(draft, policy, last[1], last[2]):
            kept[job.id] = last
            parts.append(last[0])
            continue
        claim = draft.claim(job.id)
        device = draft.plant.spots[claim.nodes[0][0]].node.device if claim is not None else None
        if claim is None or device is None:
            continue
        part = _part(draft, policy, bounds, job, claim, device, is_asked=job.id in asked)
        parts.append(part)
        if part.is_lasting:
            node = claim.nodes[0][0]
            kept[job.id] = (part, draft.conditions.node_gpu_watts.get(node), node)
    draft.lasting[Part, site] = _Known(policy, under, kept)
    return parts


def _still_reads(draft: Snapshot, policy: Policy, reading: tuple[float, float] | None, node: int) -> bool:
    return (
        reading is not None
        and draft.conditions.node_gpu_watts.get(node) is reading
        and node not in draft.conditions.mute
        and draft.is_node_read(node, reading[1], policy.thresholds.reading_max_age)
    )


def _part(
    draft: Snapshot,
    policy: Policy,
    bounds: Sequence[Bound],
    job: Job,
    claim: Claim,
    device: Device,
    *,
    is_asked: bool,
) -> Part:
    appetite = read_appetite(draft, policy, job, claim, device)
    under = shares_of(draft.plant, claim, bounds)
    off_watts = _off_watts(draft, policy, claim)
    if job.state is JobState.PAUSING and job.yields:
        return Part(job, device, appetite, under, leaves_watts=off_watts)
    is_movable = (
        job.state is JobState.RUNNING
        and job.rung < 0  # on a rung, its ladder decides
        and not is_asked
        and not draft.flying(job.id)
        and (appetite.is_read or policy.power_sharing.by == "caps")
        and not is_rigid(job, policy)
    )
    if not is_movable:
        return Part(job, device, appetite, under)
    off_each = off_watts / job.request.gpus if job.request.checkpoints else None
    menu = menu_for(policy, device, job.request, appetite.uncapped, off_each)
    fractions = [level.fraction for level in menu.levels]
    level = max(0, bisect_right(fractions, job.power_fraction + 1e-9) - 1)
    return Part(job, device, appetite, under, menu, level)


def _off_watts(draft: Snapshot, policy: Policy, claim: Claim) -> float:
    """What a job's nodes would take beyond idle without it: less than nothing where they then sleep."""
    share_saved, spots = 1.0 - policy.power_sharing.asleep, draft.plant.spots
    return -share_saved * sum(
        [spots[node].node.idle_watts for node, gpus in claim.nodes if gpus == spots[node].node.gpus]
    )
