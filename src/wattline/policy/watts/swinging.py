"""Swinging: would the steps of training on a feed swing its load by more than it bears?

Generators and UPSs follow slow changes and bear quick ones badly. All GPUs of one job compute and wait
together; several jobs add up as `physics.swing` says. Nothing is worked out for jobs that do not swing, nor
for feeds that bear any swing.
"""

from __future__ import annotations

from functools import lru_cache

from wattline.facility import Supply
from wattline.physics.swing import most_swing_watts, predict_joint_swing_watts, predict_swing_watts
from wattline.spec.policy import Policy
from wattline.state import Job, Outcome, Place, Plant, Snapshot, Verdict, peak_watts_on
from wattline.units import format_watts


@lru_cache(maxsize=8)
def swing_limits(plant: Plant) -> dict[int, Supply]:
    """Supplies that do not bear any swing."""
    supplies = [supply for site in plant.facility.sites for supply in site.supplies]
    return {plant.resource_number[one.name]: one for one in supplies if one.swing_watts is not None}


class Swings:
    """What swings on each feed, good for one decision; whoever begins in it is added."""

    def __init__(self, draft: Snapshot, policy: Policy) -> None:
        self._draft, self._factor = draft, policy.thresholds.swing_factor
        self._limits = swing_limits(draft.plant)
        self._on: dict[int, dict[str, float]] = {}  # by supply and job, in watts

    def judge(self, job: Job, place: Place, power_fraction: float) -> tuple[int, Verdict] | None:
        """The first feed on which a job would swing too much at a place; None: it may run there."""
        if not self._limits:
            return None
        for supply, watts in self._swing_of(job, place, power_fraction).items():
            limit = self._limits[supply].swing_watts or 0.0
            others = [other for name, other in self._swinging(supply).items() if name != job.id]
            joint = predict_joint_swing_watts([*others, watts], self._factor)
            if joint > limit:
                most = most_swing_watts(others, limit, self._factor)
                return supply, self._verdict(job, place, supply, watts, joint, most, power_fraction)
        return None

    def add(self, job: Job, place: Place, power_fraction: float) -> None:
        if self._limits:
            for supply, watts in self._swing_of(job, place, power_fraction).items():
                self._swinging(supply)[job.id] = watts

    def _swinging(self, supply: int) -> dict[str, float]:
        known = self._on.get(supply)
        if known is None:
            known = self._on[supply] = {}
            for job_id in self._draft.jobs_on(supply):
                job = self._draft.jobs[job_id]
                if job.place is not None:
                    watts = self._swing_of(job, job.place, job.power_fraction).get(supply)
                    if watts:
                        known[job_id] = watts
        return known

    def _swing_of(self, job: Job, place: Place, power_fraction: float) -> dict[int, float]:
        """What a job swings on each feed that minds: as measured, else as declared."""
        request, plant = job.request, self._draft.plant
        measured = self._draft.reading(job.id, "swing_watts")
        if (request.communicating_watts is None and measured is None) or not request.gpus:
            return {}
        step_seconds = self._draft.reading(job.id, "step_seconds") or request.step_seconds
        swings: dict[int, float] = {}
        for name, gpus in place.nodes:
            node = plant.node_number[name]
            if measured is not None:
                watts = measured * gpus / request.gpus
            else:
                peak = peak_watts_on(request, plant, node, gpus, power_fraction) / max(1, gpus)
                watts = predict_swing_watts(gpus, peak, request.communicating_watts or 0.0)
            for supply, share in plant.spots[node].power:
                if supply in self._limits and step_seconds >= self._limits[supply].swing_seconds:
                    swings[supply] = swings.get(supply, 0.0) + share * watts
        return {supply: watts for supply, watts in swings.items() if watts > 0.0}

    def _verdict(
        self, job: Job, place: Place, supply: int, watts: float, joint: float, most: float, fraction: float
    ) -> Verdict:
        limit = self._limits[supply].swing_watts or 0.0
        changes = ["others there end"] if most < limit else []
        peak = peak_watts_on(
            job.request, self._draft.plant, self._draft.plant.node_number[place.nodes[0][0]], 1, fraction
        )
        before = job.request.communicating_watts or 0.0
        if most > 0.0:
            floor = before + (peak - before) * (1.0 - most / watts)
            more = job.request.gpus * (floor - before)
            changes.append(
                f"a floor of {format_watts(floor)} for each GPU while it communicates, for up to "
                f"{format_watts(more)} more"
            )
        return Verdict(
            rule="swing.supply",
            subject=self._limits[supply].name,
            outcome=Outcome.WAIT,
            job=job.id,
            numbers={
                "short_by_watts": joint - limit,
                "asked_watts": watts,
                "joint_watts": joint,
                "limit_watts": limit,
            },
            change=", or ".join(changes) or "it swings less",
        )
