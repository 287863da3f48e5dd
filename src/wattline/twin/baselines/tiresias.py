"""Tiresias: who has had the least so far, and who must make way for them?

Discretised least attained service with two queues (Gu et al., NSDI '19), as the Pollux artifact simulates it:
decisions in rounds, a job that has used its share of GPU time goes behind all that have not, each queue in
order of arrival, and whoever no longer fits the GPUs is paused. A job that keeps no checkpoints stays.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from wattline.spec.policy import Policy
from wattline.state import Decision, Job, JobState, Snapshot
from wattline.twin.baselines.packing import choose_roomiest, gpus_of_pools, pool_of, pools_for
from wattline.twin.baselines.turn import Turn, order
from wattline.units import SECONDS_PER_HOUR

ROUND_SECONDS = 60.0
DEMOTED_GPU_SECONDS = 16 * SECONDS_PER_HOUR


def decide_tiresias(snapshot: Snapshot, policy: Policy) -> Decision:
    """Rounds begin at whole multiples of their length.

    Between them GPUs are given out only where someone took a while to make way.
    """
    turn = Turn(snapshot, policy)
    paused = [job for job in map(snapshot.job, snapshot.paused) if job.asked != "pause"]
    if turn.anyone_waits or paused:
        round_at = snapshot.at // ROUND_SECONDS * ROUND_SECONDS
        turn.looks.append(round_at + ROUND_SECONDS)
        if snapshot.at == round_at:
            _share(turn, paused, preempting=True)
        elif any(job.since > round_at for job in paused):
            _share(turn, paused, preempting=False)
    return turn.decision()


def _share(turn: Turn, paused: list[Job], *, preempting: bool) -> None:
    """Give GPUs out by count in order of rank; where several pools would do, the first with enough left."""
    draft = turn.draft
    left = list(gpus_of_pools(draft.plant))
    held, leaving = [], False
    for job in map(draft.job, draft.holding):
        if job.state is JobState.RUNNING and job.request.checkpoints:
            held.append(job)
        elif job.state in (JobState.STARTING, JobState.RUNNING):
            left[_homes(draft, job)[0]] -= job.request.gpus
        else:
            leaving = leaving or job.since == draft.at
    begin: list[tuple[Job, int]] = []
    for job in _ranked(turn, [*held, *paused]):
        pool = next((home for home in _homes(draft, job) if left[home] >= job.request.gpus), None)
        if pool is not None:
            left[pool] -= job.request.gpus
            if job.state is not JobState.RUNNING:
                begin.append((job, pool))
        elif job.state is JobState.WAITING:
            turn.pass_over_alike()
        elif job.state is JobState.RUNNING and preempting:
            turn.pause(job, "others have had less")
            leaving = True
    if leaving:  # the first in rank chooses among all GPUs of the round
        return
    for job, pool in begin:
        place = choose_roomiest(draft, job.request, pool)
        if place is not None:
            turn.begin(job, place)


def _ranked(turn: Turn, known: list[Job]) -> Iterator[Job]:
    """Those who have not had their share, then those who have."""
    at = turn.draft.at
    fresh = [job for job in known if not _has_had_its_share(job, at)]
    demoted = [job for job in known if _has_had_its_share(job, at)]
    for job in heapq.merge(sorted(fresh, key=order), turn.line(), key=order):
        if job.state is JobState.WAITING and _has_had_its_share(job, at):
            demoted.append(job)
        else:
            yield job
    yield from sorted(demoted, key=order)


def _has_had_its_share(job: Job, at: float) -> bool:
    running_seconds = 0.0
    if job.state is JobState.RUNNING and job.started_at is not None:
        running_seconds = at - job.started_at
    gpu_seconds = job.usage.gpu_hours * SECONDS_PER_HOUR + running_seconds * job.request.gpus
    return round(gpu_seconds, 3) >= DEMOTED_GPU_SECONDS


def _homes(draft: Snapshot, job: Job) -> tuple[int, ...]:
    """Pools where a job may be: one that runs stays where it is, one that was paused at its site."""
    if job.place is None or job.state is JobState.WAITING:
        return pools_for(draft.plant, job.request)
    if job.state is not JobState.PAUSED:
        return (pool_of(draft.plant, job.place),)
    site = job.place.site
    return tuple(pool for pool in pools_for(draft.plant, job.request) if draft.plant.pools[pool][0] == site)
