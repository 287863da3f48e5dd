"""Lanes: what could be asked for instead so that a job starts at once, where its queue is too long?

Besides what `explain` offers to any job that waits: another class. Each was tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wattline.policy.admitting.kept_places import beside_kept
from wattline.policy.explaining.options import choose_options
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.judging import judge_request
from wattline.policy.placing.offering import Option, is_carried, named_gpus, with_gpus
from wattline.spec.policy import Policy
from wattline.state import Job, JobRequest, Snapshot

replace = msgspec.structs.replace

_MOST_CLASSES = 20


def choose_lanes(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[Option, ...]:
    """All that would start it now, what changes least first."""
    found = [option for option in choose_options(snapshot, policy, job) if option.starts_at <= snapshot.at]
    now = beside_kept(snapshot, policy, job.id)[0] if snapshot.reservations else snapshot
    fewer = [option for option in found if option.is_for_fewer_gpus]
    others = [option for option in found if not option.is_for_fewer_gpus]
    return (*others, *_in_other_class(now, policy, job), *fewer)


def lesser_requests(policy: Policy, request: JobRequest) -> Iterator[tuple[Option, JobRequest]]:
    """What else could be asked for, untried: another class, then fewer GPUs, the most first."""
    for name in list(policy.classes)[:_MOST_CLASSES]:
        if name != request.scheduling_class:
            yield _named_class(name), replace(request, scheduling_class=name)
    gpus = request.gpus // 2
    while gpus:
        yield named_gpus(gpus), with_gpus(request, gpus)
        gpus //= 2


def _named_class(name: str) -> Option:
    return Option(
        change=f"ask for class {name}",
        starts_at=0.0,
        cost_delta_usd=0.0,
        brief=f"in class {name}",
        fields={"class": name},
    )


def _in_other_class(now: Snapshot, policy: Policy, job: Job) -> Iterator[Option]:
    for option, request in lesser_requests(policy, job.remainder):
        if option.is_for_fewer_gpus:
            return
        place = judge_request(now, policy, request, home_of(now, job)).place
        if place is not None and is_carried(now, policy, request, place):
            yield replace(option, starts_at=now.at)
            return
