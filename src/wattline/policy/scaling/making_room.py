"""Making room: which running jobs go on with fewer GPUs, so that one that waits may start beside them?

Whoever waits and has as good a claim asks: those give first that lose least for each GPU they give. They go
on where they are, on some of the GPUs that they have. Among equals it must be worth it: where somebody leaves
soon anyway, all of them being slower would only end all of them later.
"""

from __future__ import annotations

from collections.abc import Collection

from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.offering import is_carried
from wattline.policy.placing.placement import choose_place
from wattline.policy.placing.price import save_seconds
from wattline.policy.scaling.widths import (
    elastic_of,
    left_seconds,
    part_of,
    pool_of,
    rested_at,
    wait_seconds,
    widest,
)
from wattline.policy.turns.fairness import Fairness
from wattline.policy.turns.reserving import may_run
from wattline.spec.elastic import Resizing
from wattline.spec.policy import Policy, SchedulingClass
from wattline.state import Job, JobState, Place, Snapshot, claim_of, compared_hours
from wattline.units import SECONDS_PER_HOUR

_UNKNOWN = SchedulingClass()


def find_room(
    draft: Snapshot, policy: Policy, fairness: Fairness, head: Job, able: list[Job], looks: list[float]
) -> tuple[Place, list[tuple[Job, Place]]] | None:
    """A place for one that waits, and where those go on who give of theirs; None where all is not enough.

    `looks` hears when somebody may give that may not yet.
    """
    assert policy.resizing is not None
    pools = {pool for _, pool in pools_for(draft.plant, policy, head.narrowest.remainder)}
    givers: list[tuple[float, str, Job, int]] = []
    for known in able:
        one = draft.job(known.id)
        if one.state is not JobState.RUNNING or pool_of(draft, one) not in pools:
            continue
        least = _floor(draft, policy, fairness, head, one, looks)
        if least < one.request.gpus:
            lost = price(one, least, policy.resizing) / (one.request.gpus - least)
            givers.append((lost, one.id, one, least))
    opening = _open(draft, policy, head, [(one, least) for _, _, one, least in sorted(givers)])
    if opening is None or not _is_worth_it(draft, policy, head, pools, opening[1]):
        return None
    return opening


def _is_worth_it(
    draft: Snapshot, policy: Policy, head: Job, pools: Collection[int], narrower: list[tuple[Job, Place]]
) -> bool:
    """Whether one that waits gains more time than those lose who are its equals.

    Who is of a lower class, of a team that holds more, or keeps all it asked for is no equal: it gives way.
    """
    assert policy.resizing is not None
    seconds = compared_hours(head.remainder) * SECONDS_PER_HOUR
    delay_seconds = 0.0
    for one, to in narrower:
        is_other_team = bool(policy.teams) and one.request.project != head.request.project
        is_below = _class_of(one, policy).priority < _class_of(head, policy).priority
        if is_other_team or is_below or to.gpus >= elastic_of(one).gpus:
            continue
        speed, left = one.request.speed_at(to.gpus), left_seconds(one, draft.at) or 0.0
        delay_seconds += save_seconds(one) + policy.resizing.restart
        delay_seconds += min(seconds * (1.0 - speed), left * (1.0 / speed - 1.0))
    return not delay_seconds or delay_seconds <= wait_seconds(draft, head.narrowest, pools)


def _floor(
    draft: Snapshot, policy: Policy, fairness: Fairness, head: Job, one: Job, looks: list[float]
) -> int:
    """The fewest GPUs that a job must be left with by one that waits; as many as it has: it gives none.

    What it has beyond what it asked for it gives to anybody, and at once.
    """
    assert policy.resizing is not None
    elastic, gpus = elastic_of(one), one.request.gpus
    leaves_at = draft.at + (left_seconds(one, draft.at) or 0.0)
    if leaves_at <= draft.at + save_seconds(one) + policy.resizing.restart:
        return gpus  # it will have ended by itself
    floor = min(gpus, elastic.gpus)
    mine, its = _class_of(head, policy), _class_of(one, policy)
    if floor <= elastic.least or not its.gives_way or mine.priority < its.priority:
        return floor
    project, other = head.request.project, one.request.project
    if policy.teams and project != other:
        standing = fairness.standing(project, head.narrowest.request.gpus)
        if standing > fairness.standing(other, elastic.least - gpus):
            return floor
    until = rested_at(one, policy.resizing)
    if draft.at < until:
        looks.append(until)
        return floor
    return elastic.least


def _open(
    draft: Snapshot, policy: Policy, head: Job, givers: list[tuple[Job, int]]
) -> tuple[Place, list[tuple[Job, Place]]] | None:
    """One giver after the other goes down to its least; then they get back what is not needed."""
    after, least_places = draft.copy(), list[tuple[Job, Place]]()
    place: Place | None = None
    for one, least in givers:
        assert one.place is not None
        left = part_of(one.place, least)
        if left is None or not may_run(draft, policy, one.at_width(least)):
            continue
        hold(after, one, one.place, -1)
        hold(after, one, left)
        least_places.append((one, left))
        place = _place_for(after, policy, head)
        if place is not None:
            break
    if place is None:
        return None
    hold(after, head, place)
    narrower = []
    for one, left in reversed(least_places):  # who loses most gets back first what is not needed
        hold(after, one, left, -1)
        to = _widest_of_own(after, policy, one, left.gpus) or left
        hold(after, one, to)
        if to.gpus < one.request.gpus:
            narrower.append((one, to))
    return (place, narrower) if narrower else None


def _place_for(after: Snapshot, policy: Policy, head: Job) -> Place | None:
    """The widest that fits, where it is elastic too."""

    def find(gpus: int) -> Place | None:
        one = head.at_width(gpus)
        return choose_place(after, policy, one.remainder, near=home_of(after, head), explain=False).place

    elastic, gpus = head.request.elastic, head.request.gpus
    return find(gpus) if elastic is None else widest(range(elastic.least, gpus + 1, elastic.step), find)


def _widest_of_own(after: Snapshot, policy: Policy, job: Job, least: int) -> Place | None:
    """The most of the GPUs that it has now which it can go on with."""
    numbers, place = after.plant.node_number, job.place
    assert place is not None

    def find(gpus: int) -> Place | None:
        to = part_of(place, gpus, lambda node: after.gpus_free(numbers[node]))
        return to if to is not None and is_carried(after, policy, job.at_width(gpus).remainder, to) else None

    return widest(range(least, job.request.gpus + 1, elastic_of(job).step), find)


def hold(after: Snapshot, job: Job, place: Place, sign: int = 1) -> None:
    """Lay what a job takes at a place, or take it away."""
    held = after.claim(job.id) if sign < 0 and place == job.place else None
    after.keep(held or claim_of(job.at_width(place.gpus).request, place, after.plant), sign)


def price(job: Job, gpus: int, resizing: Resizing) -> float:
    """Useful GPU-seconds lost: all while it is away, and what it is slower until it may grow again."""
    away = save_seconds(job) + resizing.restart
    return job.request.gpus * (away + resizing.least_time * (1.0 - job.request.speed_at(gpus)))


def _class_of(job: Job, policy: Policy) -> SchedulingClass:
    return policy.classes.get(job.request.scheduling_class, _UNKNOWN)
