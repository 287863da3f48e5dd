"""Lanes: what could be asked for instead so that a job starts at once, where its queue is too long?

Besides what `explain` offers to any job that waits: fewer GPUs, and another class. Each was tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wattline.policy.homing import home_of
from wattline.policy.judging import judge_request
from wattline.policy.kept_places import beside_kept
from wattline.policy.options import Option, choose_options, is_carried
from wattline.spec.policy import Policy
from wattline.state import Job, JobRequest, Snapshot

replace = msgspec.structs.replace

_MOST_CLASSES = 20


def choose_lanes(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[Option, ...]:
    """All that would start it now, what changes least first."""
    found = [option for option in choose_options(snapshot, policy, job) if option.starts_at <= snapshot.at]
    now = beside_kept(snapshot, policy, job.id)[0] if snapshot.reservations else snapshot
    return (*found, *_in_other_class(now, policy, job), *_with_fewer_gpus(now, policy, job))


def lesser_requests(policy: Policy, request: JobRequest) -> Iterator[tuple[Option, JobRequest]]:
    """What else could be asked for, untried: another class, then fewer GPUs, the most first."""
    for name in list(policy.classes)[:_MOST_CLASSES]:
        if name != request.scheduling_class:
            yield _named_class(name), replace(request, scheduling_class=name)
    gpus = request.gpus // 2
    while gpus:
        yield _named_gpus(gpus), with_gpus(request, gpus)
        gpus //= 2


def with_gpus(request: JobRequest, gpus: int) -> JobRequest:
    """The same with fewer GPUs, and as much less power."""
    watts = None if request.peak_watts is None else request.peak_watts * gpus / request.gpus
    return replace(request, gpus=gpus, peak_watts=watts)


def _named_class(name: str) -> Option:
    return Option(
        change=f"ask for class {name}",
        starts_at=0.0,
        cost_delta_usd=0.0,
        brief=f"in class {name}",
        fields={"class": name},
    )


def _named_gpus(gpus: int) -> Option:
    said = f"{gpus} GPU" if gpus == 1 else f"{gpus} GPUs"
    return Option(
        change=f"ask for {said}",
        starts_at=0.0,
        cost_delta_usd=None,  # how much longer it takes then is not known
        brief=f"with {said}",
        fields={"resources.gpus": str(gpus)},
    )


def _in_other_class(now: Snapshot, policy: Policy, job: Job) -> Iterator[Option]:
    yield from _first_that_starts(now, policy, job, "class")


def _with_fewer_gpus(now: Snapshot, policy: Policy, job: Job) -> Iterator[Option]:
    yield from _first_that_starts(now, policy, job, "resources.gpus")


def _first_that_starts(now: Snapshot, policy: Policy, job: Job, field: str) -> Iterator[Option]:
    for option, request in lesser_requests(policy, job.remainder):
        if field not in option.fields:
            continue
        place = judge_request(now, policy, request, home_of(now, job)).place
        if place is not None and is_carried(now, policy, request, place):
            yield replace(option, starts_at=now.at)
            return
