"""Kept places: which reservation does a job wait behind, or for what does its own still wait?

A place that is kept for somebody is not free to others, though nobody runs there. Whoever will have left
before it is due may use it meanwhile: how short that is, is tried on what is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from wattline.policy.admitting.securing import Kept, sort_out
from wattline.policy.permitting.classes import judge_class
from wattline.policy.permitting.permission import judge_permission
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.judging import judge_request
from wattline.policy.placing.placement import Choice, choose_place
from wattline.policy.placing.waiting import find_wait
from wattline.policy.turns.reserving import expected_end
from wattline.spec.policy import Policy
from wattline.state import Job, Place, Reservation, Snapshot, Verdict, claim_of
from wattline.units import format_seconds

# So many reservations are looked at one by one; policies allow a hundred.
_MOST_BLAMED = 16
_MOST_LEAVERS = 8
# A duration is offered in whole minutes: by the time that it is written down some seconds have passed.
_WHOLE_SECONDS = 60.0

When = Callable[[float], str]


class KeptPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation that decides how long a job waits: its own, or another's."""

    holder: str
    project: str
    is_own: bool
    made_at: float
    starts_at: float | None  # None: one of those who must leave has set no end
    place: Place
    gpus: int
    free_gpus: int  # of them
    leavers: tuple[str, ...]  # who must leave before it starts, the last to leave last
    because: str = ""


def beside_kept(snapshot: Snapshot, policy: Policy, job_id: str) -> tuple[Snapshot, Kept]:
    """What is free for a job beside all that is kept for others, as admission lays it."""
    draft = snapshot.copy()
    kept = Kept(draft)
    for reservation in _of_others(snapshot, policy, job_id):
        kept.lay(reservation)
    return draft, kept


def after_kept(snapshot: Snapshot, policy: Policy, job_id: str) -> Snapshot:
    """As if all who have a place kept were there already: what is left then is left for good."""
    draft = snapshot.copy()
    for reservation in _of_others(snapshot, policy, job_id):
        request = draft.job(reservation.job).remainder
        draft.keep(claim_of(request, reservation.place, draft.plant))
    return draft


def _of_others(snapshot: Snapshot, policy: Policy, job_id: str) -> list[Reservation]:
    standing, _ = sort_out(snapshot, policy)
    return [reservation for reservation in standing if reservation.job != job_id]


def find_kept(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[Choice, KeptPlace | None]:
    """What is judged of a waiting job where places are kept, and the reservation that keeps it waiting."""
    near = home_of(snapshot, job)
    draft, _ = beside_kept(snapshot, policy, job.id)
    choice = judge_request(draft, policy, job.remainder, near)
    own = snapshot.reservations.get(job.id)
    if choice.place is not None or own is not None:
        return choice, None if own is None else _describe(snapshot, policy, own, is_own=True)
    free = judge_request(snapshot, policy, job.remainder, near)
    if free.place is None:  # it would wait without them too
        return choice, None
    behind = _blame(snapshot, policy, job, near)
    kept = _describe(snapshot, policy, behind, is_own=False)
    numbers = {"kept_gpus": float(kept.free_gpus)}
    if kept.starts_at is not None:
        numbers["due_in_seconds"] = max(0.0, kept.starts_at - snapshot.at)
    change = f"{behind.job} has started, or is given up"
    verdict = Verdict.wait("reservation", behind.job, change, **numbers)
    return Choice(None, (*free.verdicts, verdict)), kept


def _blame(snapshot: Snapshot, policy: Policy, job: Job, near: str | None) -> Reservation:
    """The one without which it would start; where it takes more than one, the first that was made."""
    others = _of_others(snapshot, policy, job.id)
    for one in others[:_MOST_BLAMED] if len(others) > 1 else ():
        draft = snapshot.copy()
        kept = Kept(draft)
        for reservation in others:
            if reservation is not one:
                kept.lay(reservation)
        if choose_place(draft, policy, job.remainder, near=near, explain=False).place is not None:
            return one
    return others[0]


def _describe(snapshot: Snapshot, policy: Policy, reservation: Reservation, *, is_own: bool) -> KeptPlace:
    holder, numbers = snapshot.job(reservation.job), snapshot.plant.node_number
    free = [(gpus, snapshot.gpus_free(numbers[node])) for node, gpus in reservation.place.nodes]
    return KeptPlace(
        holder=holder.id,
        project=holder.request.project,
        is_own=is_own,
        made_at=reservation.made_at,
        starts_at=reservation.starts_at,
        place=reservation.place,
        gpus=sum(gpus for gpus, _ in free),
        free_gpus=sum(min(both) for both in free),
        leavers=_leavers(snapshot, policy, holder, reservation),
        because=reservation.because,
    )


def _leavers(snapshot: Snapshot, policy: Policy, holder: Job, reservation: Reservation) -> tuple[str, ...]:
    """Who is in the way: those at the place; where only power or heat is missing, who must have ended."""
    numbers = [snapshot.plant.node_number[node] for node, _ in reservation.place.nodes]
    short = [
        number
        for number, (_, gpus) in zip(numbers, reservation.place.nodes, strict=True)
        if snapshot.gpus_free(number) < gpus
    ]
    there = [
        snapshot.job(job_id) for job_id in dict.fromkeys(one for at in short for one in snapshot.jobs_at(at))
    ]
    if there:
        there.sort(key=lambda job: (expected_end(job, snapshot.at), job.id))
        return tuple(job.id for job in there[-_MOST_LEAVERS:])
    wait = find_wait(snapshot, policy, holder.remainder, home_of(snapshot, holder))
    return () if wait is None else (wait.last,)


def fits_in_between(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[float, Place] | None:
    """The longest that a job may declare to start at once on what is kept; None: that is no way."""
    request, near = job.remainder, home_of(snapshot, job)
    if not request.gpus or job.id in snapshot.reservations:
        return None
    draft, kept = beside_kept(snapshot, policy, job.id)
    due = [one.starts_at for one in _of_others(snapshot, policy, job.id) if one.starts_at is not None]
    for starts_at in sorted(set(due), reverse=True):
        left = starts_at - snapshot.at
        seconds = left // _WHOLE_SECONDS * _WHOLE_SECONDS if left >= _WHOLE_SECONDS else math.floor(left)
        declared = request.max_duration_seconds
        if seconds <= 0 or (declared is not None and declared <= seconds):
            continue
        short = msgspec.structs.replace(request, max_duration_seconds=float(seconds))
        permission = judge_permission(snapshot, short, policy) + judge_class(snapshot, policy, short)
        if not all(verdict.allows for verdict in permission):
            continue
        lifted = kept.lift(snapshot.at + seconds)
        place = choose_place(draft, policy, short, near=near, explain=False).place
        kept.lay_again(lifted)
        if place is not None:
            return float(seconds), place
    return None


def tell_kept(kept: KeptPlace, at: float, when: When | None = None) -> str:
    """The same in words; times are told from now on unless somebody has a clock."""
    since = f"since {when(kept.made_at)}" if when else f"for {format_seconds(max(0.0, at - kept.made_at))}"
    last = kept.leavers[-1] if kept.leavers else ""
    if kept.starts_at is None:
        until = f"once {last or 'enough'} has left, which set no end"
    else:
        due = when(kept.starts_at) if when else f"in {format_seconds(max(0.0, kept.starts_at - at))}"
        until = f"{due} when {last} ends" if last else due
    if not kept.is_own:
        who = f"{kept.holder} ({kept.project})" if kept.project else kept.holder
        return f"waits behind the reservation of {who}, kept {since}, which starts {until}"
    return (
        f"has {kept.place} kept {since}, {kept.free_gpus} of {kept.gpus} GPUs free so far ({kept.because}); "
        f"starts {until}"
    )
