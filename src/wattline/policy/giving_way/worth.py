"""Worth: of those who could give way, whose work is worth least for what it costs?

The price of a rung says how much work is lost. What that work is worth is weighed in by the policy: how
urgent it is, how likely it is to be worth it, and what it costs. Without weights nothing is asked.
"""

from __future__ import annotations

from wattline.physics import predict_speed
from wattline.spec.pipeline import Priority
from wattline.spec.policy import Policy
from wattline.state import Job, JobState, Snapshot
from wattline.state.account import usage_of
from wattline.state.claim import peak_watts_at

# Each step of priority is worth twice the one below.
_PRIORITY = {Priority.LOW: 0.5, Priority.NORMAL: 1.0, Priority.HIGH: 2.0, Priority.URGENT: 4.0}
_LEAST_CONFIDENCE = 0.01

_Phase = tuple[str, str, str]  # project, model, phase


class Worth:
    """Good for one decision."""

    def __init__(self, draft: Snapshot, policy: Policy) -> None:
        self._draft, self._weights = draft, policy.throttling
        self._ended: dict[_Phase, tuple[int, int]] | None = None  # how many ended well, and in all

    def weigh(self, job: Job) -> float:
        """How much more a GPU-second of a job is worth than one of a job that is as any other."""
        weights = self._weights
        worth: float = _PRIORITY[job.request.priority] ** weights.priority
        if weights.confidence:
            worth *= max(_LEAST_CONFIDENCE, self.confidence(job)) ** weights.confidence
        if weights.cost:
            worth /= max(_LEAST_CONFIDENCE, self.usd_per_gpu_hour(job)) ** weights.cost
        return worth

    def confidence(self, job: Job) -> float:
        """Its owner's word; else the share of earlier ones of its phase that ended well, with one of each
        kind added: nobody is certain after a single one."""
        if job.request.confidence is not None:
            return job.request.confidence
        if self._ended is None:
            self._ended = self._count()
        well, ended = self._ended.get(_phase_of(job), (0, 0))
        return (well + 1) / (ended + 2)

    def usd_per_gpu_hour(self, job: Job) -> float:
        """What an hour of useful work of one of its GPUs costs where it runs, under the cap it has."""
        if job.place is None or not job.request.gpus:
            return 0.0
        gpus, plant = job.request.gpus, self._draft.plant
        kilowatts = peak_watts_at(job.request, job.place, plant, job.power_fraction) / 1000.0
        usage = usage_of(float(gpus), kilowatts, job.place, plant)
        return usage.usd / gpus / (predict_speed(job.power_fraction) * job.in_flight_fraction)

    def _count(self) -> dict[_Phase, tuple[int, int]]:
        found: dict[_Phase, tuple[int, int]] = {}
        for job in self._draft.jobs.values():
            if job.state in (JobState.SUCCEEDED, JobState.FAILED):
                well, ended = found.get(_phase_of(job), (0, 0))
                found[_phase_of(job)] = (well + (job.state is JobState.SUCCEEDED), ended + 1)
        return found


def _phase_of(job: Job) -> _Phase:
    return (job.request.project, job.request.model, job.request.phase)
