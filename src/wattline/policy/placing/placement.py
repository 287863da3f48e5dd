"""Placement: among the places where a job fits, which is best; and where it fits nowhere, what is closest?

Places are first weighed by numbers alone; only the one that is taken, or that came closest, is judged in
full, with a verdict of every rule.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.search import ENOUGH, Search
from wattline.policy.placing.shortfall import judge_existence
from wattline.spec.policy import Policy
from wattline.state import (
    JobRequest,
    Place,
    Snapshot,
    Verdict,
    compared_hours,
)

# What came closest is looked for in this many pools, the cheapest first: one reason is enough.
_MOST_EXPLAINED = 16


class Choice(msgspec.Struct, frozen=True):
    """A place with its verdicts, or the verdicts of what came closest."""

    place: Place | None
    verdicts: tuple[Verdict, ...]


def choose_place(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    *,
    power_fraction: float = 1.0,
    near: str | None = None,
    sites: Collection[str] | None = None,
    only: Collection[int] | None = None,
    explain: bool = True,
    judge: bool = True,
    roomy: bool = False,
    pools: Sequence[tuple[float, int]] | None = None,
) -> Choice:
    """The best feasible place, cheapest by the policy's weights; ties go to the first in the facility.

    Where nothing fits, `explain` says what came closest; where `only` some pools were looked at, nothing is
    said about the others. Who only asks where need not `judge` what is found; who knows that all these
    pools are `roomy` saves that look. `pools`, with what an hour there scores, stand instead of our own.
    """
    search = Search(snapshot, policy, request, power_fraction, near)
    spreads = request.may_spread
    hours = compared_hours(request)
    if pools is None:
        pools = pools_for(snapshot.plant, policy, request, sites, power_fraction)
    fitting = 0
    for each, pool in search.unfilled(pools):
        if only is not None and pool not in only:
            continue
        cost = each * hours
        if fitting >= ENOUGH or search.best_score <= cost:
            break  # what is left costs as much or more, however roomy it is
        room = search.room(pool)
        tried = search.weigh_single(pool, cost, room)
        # A job that fits on one node is not spread over several.
        # Where nothing fits, that is worked out in full: nobody has to look here again until it changes.
        if not tried:
            spread = request.gpus > 1 and (roomy or room.spreads(request.gpus))
            if spread and spreads:
                search.weigh_gangs(pool, cost, room)
            elif not spread and not room.fits(request.gpus):
                search.note_full(pool)
        fitting += tried
    if search.best:
        place = search.best_place or search.place(search.best)
        return Choice(place, search.judge(place) if judge else ())
    if only is not None or not explain:
        judged = judge and search.closest and request.project in policy.teams
        return Choice(None, search.judge(search.place(search.closest)) if judged else ())
    for _, pool in pools[:_MOST_EXPLAINED]:
        if search.is_farther(pool):
            continue
        search.look_for_closest(pool)
        if spreads and snapshot.free_in(pool) >= request.gpus:
            search.note_gangs(pool)
    search.weigh_noted()
    if search.closest:
        return Choice(None, search.judge(search.place(search.closest)))
    return Choice(None, (judge_existence(snapshot, policy, request, sites),))


def score_place(snapshot: Snapshot, policy: Policy, request: JobRequest, place: Place) -> float | None:
    """What a place scores if nothing else is decided; None where the job does not fit there."""
    search = Search(snapshot, policy, request, 1.0, None)
    plant = snapshot.plant
    nodes = tuple([(plant.node_number[name], gpus) for name, gpus in place.nodes])
    pool = plant.spots[nodes[0][0]].pool
    costs = [each for each, known in pools_for(plant, policy, request) if known == pool]
    if not costs or not search.weigh(nodes, costs[0] * compared_hours(request)):
        return None
    return search.best_score
