"""Securing: what is done for jobs that wait though they should not, by reserving, making way and filling in?

Looked at once in a while, not at every event: a place that opens in hours need not be looked for each second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from wattline.policy.headroom.loosening import Loosened
from wattline.policy.naming import next_action
from wattline.policy.permitting.modes import with_mode
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.placement import choose_place
from wattline.policy.turns.fairness import Fairness
from wattline.policy.turns.preemption import Ways
from wattline.policy.turns.reserving import is_lost, keep_free, may_run, reserve_place
from wattline.policy.turns.turns import Turns
from wattline.policy.watts.staggering import Stagger
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Claim, Job, JobState, Line, Reservation, Snapshot

# Places that others are making way for, besides those that are reserved for patience.
_MOST_WAYS = 16
# Of the first in line so many are looked at: a reservation to one far behind is worth little.
MOST_TRIED = 16
# Of each queue so many are looked at for one short enough to be done before a reservation is due.
_MOST_SHORT = 32
# In one decision so many are tried for what is kept for others.
_MOST_FILLED = 64


class Kept:
    """The reservations that stand, laid over the draft."""

    def __init__(self, draft: Snapshot) -> None:
        self._draft = draft
        self._claims: list[tuple[Reservation, Claim | None]] = []

    def lay(self, reservation: Reservation) -> None:
        self._claims.append((reservation, keep_free(self._draft, reservation)))

    @property
    def latest_start(self) -> float:
        """The last time at which something that is free now is due: nothing may be there any more then."""
        if not self._claims:
            return -math.inf
        starts = [kept.starts_at for kept, claim in self._claims if claim is not None]
        return max([at for at in starts if at is not None], default=-math.inf)

    def lift(self, ends_at: float) -> list[Reservation]:
        """Let go of all that is due only after this time; which they are."""
        lifted = []
        for number, (reservation, claim) in enumerate(self._claims):
            if claim is not None and reservation.starts_at is not None and reservation.starts_at >= ends_at:
                self._draft.keep(claim, -1)
                self._claims[number] = (reservation, None)
                lifted.append(reservation)
        return lifted

    def lay_again(self, lifted: Sequence[Reservation]) -> None:
        for number, (reservation, _) in enumerate(self._claims):
            if reservation in lifted:
                self._claims[number] = (reservation, keep_free(self._draft, reservation))


def next_securing(at: float, policy: Policy) -> float:
    """When it is looked at after a time: by the clock, so that a replay of the journal does the same."""
    every = max(1.0, policy.thresholds.settle)
    return (math.floor(at / every) + 1.0) * every


def reserve_for_overtaken(
    draft: Snapshot, policy: Policy, in_line: Iterable[Job], looks: list[float]
) -> Iterator[Reservation]:
    """A place for each that has waited longer than anybody should; `looks` hears when the next will have."""
    patience = policy.sharing.patience or 0.0
    left = policy.sharing.reservations - len(draft.reservations)
    for job in islice(in_line, MOST_TRIED):
        if left <= 0:
            return
        if draft.at < job.since + patience:
            looks.append(job.since + patience)
        elif may_run(draft, policy, job):
            reservation = reserve_place(draft, policy, job, home_of(draft, job))
            if reservation is not None:
                left -= 1
                yield reservation


def ask_to_make_way(
    draft: Snapshot, policy: Policy, fairness: Fairness, in_line: Iterable[Job]
) -> Iterator[tuple[Reservation, list[Action]]]:
    """Whom to pause for those who are entitled to run now, and the places that are then theirs."""
    ways = Ways(draft, policy, fairness)
    left = policy.sharing.reservations + _MOST_WAYS - len(draft.reservations)
    for job in islice(in_line, MOST_TRIED):
        if left <= 0:
            return
        way = ways.make_way(job, home_of(draft, job))
        if way is not None:
            left -= 1
            yield way


def fill_in(
    draft: Snapshot,
    policy: Policy,
    kept: Kept,
    standing: Callable[[str], float] | None,
    may_go: Callable[[Job], bool],
    stagger: Stagger | None = None,
) -> list[Action]:
    """Start jobs on what is kept free that will have left before it is due."""
    actions: list[Action] = []
    latest, fitting, tried = kept.latest_start, _may_fill(draft, policy, kept), 0
    turns = Turns(draft, policy, standing, lambda line: line in fitting)
    while tried < _MOST_FILLED and (head := turns.next()) is not None:
        for _, _, job_id in islice(head.line.queue, _MOST_SHORT):
            job = draft.job(job_id)
            seconds = job.remainder.max_duration_seconds
            if seconds is None or draft.at + seconds > latest or job.state is not JobState.WAITING:
                continue
            if job_id in draft.reservations or not (may_go(job) and may_run(draft, policy, job)):
                continue
            tried += 1
            action = _start_before(draft, policy, kept, job, draft.at + seconds, stagger)
            if action is None:
                break  # others of its shape fit as little
            actions.append(action)
    return actions


def _may_fill(draft: Snapshot, policy: Policy, kept: Kept) -> set[Line]:
    """Lines of which one may fit if nothing were kept for later."""
    lifted = kept.lift(draft.at)
    numbers, pools_of_site = draft.plant.site_numbers, draft.plant.pools_of_site
    sites = sorted({numbers[reservation.place.site] for reservation in lifted})
    loosened = Loosened(draft, policy, [pool for site in sites for pool in pools_of_site[site]])
    groups = draft.groups(by_project=bool(policy.teams)).values()
    found = {line for group in groups for _, line in group if loosened.may_fit_line(line)}
    kept.lay_again(lifted)
    return found


def _start_before(
    draft: Snapshot, policy: Policy, kept: Kept, job: Job, ends_at: float, stagger: Stagger | None
) -> Action | None:
    """Start a job that ends at a time on what is due only after it; None where it does not fit."""
    job, _ = with_mode(draft, policy, job)
    lifted = kept.lift(ends_at)
    choice = choose_place(draft, policy, job.remainder, near=home_of(draft, job), explain=False)
    action, fraction = None, 1.0
    if choice.place is not None and stagger is not None:
        paced = stagger.pace(job, choice)
        choice, fraction = paced.choice, paced.fraction
    if choice.place is not None:
        action = next_action(job, ActionKind.START, place=choice.place, fraction=fraction, rung=-1)
        draft.issue(action)
    kept.lay_again(lifted)
    return action


def pools_kept(draft: Snapshot, jobs: Iterable[str]) -> list[int]:
    """Pools of the sites where places were kept for these jobs: there may be more room without."""
    numbers, pools_of_site = draft.plant.site_numbers, draft.plant.pools_of_site
    sites = sorted({numbers[draft.reservations[job_id].place.site] for job_id in jobs})
    return [pool for site in sites for pool in pools_of_site[site]]


def sort_out(draft: Snapshot, policy: Policy) -> tuple[list[Reservation], list[str]]:
    """The reservations that stand, and those that cannot be kept any more."""
    standing, given_up = [], []
    for job_id, reservation in draft.reservations.items():
        if is_lost(draft, policy, reservation):
            given_up.append(job_id)
        else:
            standing.append(reservation)
    return standing, given_up
