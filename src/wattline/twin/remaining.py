"""Remaining: how long will a job still take, when nobody knows?

What is known best counts: its own progress, then what the same phase took in earlier runs of its pipeline,
then the longest it may take and how much of that jobs use here, then how long jobs with as many GPUs took
lately, and last how long jobs of clusters take. All of it is of those that lasted as long as this one has.
What is not known is drawn by lot, one for each job and future, so that many futures together show what may
come.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from wattline.state import ENDED, HOLDING, Job, JobState, State

# Between what was seen and what comes, also where all else is the same; assumed.
_WIDTH = 0.1
# Philly: the logarithms of 54,831 run times have their mean at 17 minutes and a deviation of 2.04. Measured
# there; that other clusters are alike is assumed.
_LOG_SECONDS = NormalDist(math.log(1042.0), 2.04)
_LEAST_SECONDS = 1.0
_LEAST_LOT, _MOST_LOT = 1e-9, 1.0 - 1e-9


@dataclass(frozen=True, slots=True, order=True)
class Lasted:
    """How long a job of some phase ran: to its end, or so far."""

    seconds: float
    goes_on: bool = False


Phase = tuple[str, str]  # of a pipeline
# Of a job: at this time, with this lot from 0 to 1, given how long others like it lasted, and what share of
# the longest that they might have run jobs used, the least first.
SecondsLeft = Callable[[Job, float, float, Sequence[Lasted], Sequence[float]], float]


def gather_lasted(state: State, at: float) -> dict[Phase, list[Lasted]]:
    """By phase of each pipeline, the shortest first. What failed tells nothing of how long it takes."""
    found: dict[Phase, list[Lasted]] = {}
    for run in state.runs.values():
        for job_id in run.jobs:
            job = state.jobs[job_id]
            goes_on = job.state not in ENDED
            if goes_on or job.state is JobState.SUCCEEDED:
                lasted = Lasted(worked_seconds(job, at), goes_on)
                found.setdefault((run.pipeline, job.request.phase), []).append(lasted)
    return {phase: sorted(lasted) for phase, lasted in found.items()}


def lasted_of(
    job: Job, state: State, known: Mapping[Phase, Sequence[Lasted]], by_gpus: Mapping[int, Sequence[Lasted]]
) -> Sequence[Lasted]:
    """Of its phase where one of those has ended; else of as many GPUs, where it says nothing itself."""
    run = state.runs.get(job.request.run)
    others = known.get((run.pipeline, job.request.phase), ()) if run is not None else ()
    if job.request.max_duration_seconds is not None or any(not each.goes_on for each in others):
        return others
    return by_gpus.get(job.request.gpus, others)


def draw_seconds_left(
    job: Job, at: float, lot: float, others: Sequence[Lasted], used_shares: Sequence[float] = ()
) -> float:
    """Running as it does now, or as asked for where it does not run."""
    worked = worked_seconds(job, at)
    if job.total and job.step > 0 and worked > 0.0:
        left = worked * max(0, job.total - job.step) / job.step * (1.0 + _WIDTH * (2.0 * lot - 1.0))
    else:
        left = _draw_total(job, worked, lot, others, used_shares) - worked
    return max(_LEAST_SECONDS, left)


def worked_seconds(job: Job, at: float) -> float:
    """All attempts together: what one lost, another did again, and so may the next."""
    worked = sum(past.ended_at - past.began_at for past in job.past if past.began_at is not None)
    if job.state in HOLDING and job.started_at is not None:
        worked += max(0.0, at - job.started_at)
    return worked


def _draw_total(
    job: Job, worked: float, lot: float, others: Sequence[Lasted], used_shares: Sequence[float]
) -> float:
    """By the others of its phase (Kaplan and Meier 1958); those that still run say that some last longer.

    Beyond the longest that has ended they say nothing more.
    """
    longer = [each for each in others if each.seconds > worked]
    at_risk, left = len(longer), 1.0
    for each in longer:
        after = left if each.goes_on else left * (at_risk - 1) / at_risk
        if 1.0 - lot >= after and not each.goes_on:
            within = (1.0 - lot - after) / (left - after)
            return each.seconds * (1.0 + _WIDTH * (1.0 - 2.0 * within))
        if not each.goes_on:
            worked = each.seconds
        at_risk, left = at_risk - 1, after
    return _draw_alone(job, worked, 1.0 - (1.0 - lot) / left, used_shares)


def _draw_alone(job: Job, worked: float, lot: float, used_shares: Sequence[float]) -> float:
    """Where nothing else is known of a job than that it lasts longer than this."""
    limit = job.request.max_duration_seconds
    if limit is not None:
        first = bisect_right(used_shares, worked / limit)
        if first < len(used_shares):  # those that had used as much of theirs went on for so long
            rank = first + int(lot * (len(used_shares) - first))
            return limit * used_shares[min(rank, len(used_shares) - 1)]
        # People ask for more than they need; what is used of it is about uniform (Tsafrir et al. 2007).
        return worked + lot * max(0.0, limit - worked)
    # Of a log-normal run time that is longer than this: who has run long will run long.
    begun = _LOG_SECONDS.cdf(math.log(worked)) if worked > 0.0 else 0.0
    share = min(max(begun + lot * (1.0 - begun), _LEAST_LOT), _MOST_LOT)
    return math.exp(_LOG_SECONDS.inv_cdf(share))
