"""Mildest: under which cap at most may a job fit, and in which pools?

What fits under one cap fits under a lower one, so it is searched for by what racks and all above them have
left. Heat, CPUs and budgets are left to whoever tries.
"""

from __future__ import annotations

from typing import NamedTuple

from wattline.policy.giving_way.capping import capping_sites
from wattline.policy.headroom.power import headroom_of
from wattline.policy.headroom.rooms import Room, Rooms
from wattline.policy.permitting.pools import pools_for
from wattline.spec.policy import Policy
from wattline.state import JobRequest, Snapshot, peak_watts_on

LOWEST_CAP = 40  # hundredths of what a GPU may draw: below, it hardly works


class Cap(NamedTuple):
    """Hundredths of what a GPU may draw, and the pools that may carry the job under it."""

    hundredths: int
    pools: list[int]


def mildest_cap(snapshot: Snapshot, policy: Policy, request: JobRequest) -> Cap | None:
    """The mildest cap under which some pool may carry a job; None: not under the lowest either."""
    headroom, rooms = headroom_of(snapshot, policy.thresholds), Rooms.of(snapshot, policy.thresholds)
    best, pools = LOWEST_CAP, list[int]()
    for _, pool in pools_for(snapshot.plant, policy, request, capping_sites(snapshot.plant)):
        asked = _Asked(snapshot, request, pool)
        room = rooms.room(snapshot, headroom, request.each_watts, pool)

        def fits(hundredths: int, asked: _Asked = asked, room: Room = room) -> bool:
            watts = asked.watts(hundredths)
            return watts < asked.all_watts and room.carries_of(watts, request.gpus, request.may_spread)

        if not fits(best):
            continue
        pools.append(pool)
        too_much = 100
        while too_much - best > 1:
            # Most pools do not do better than the best so far: ask for a little more before much more.
            middle = best + 1 if too_much == 100 and len(pools) > 1 else (best + too_much) // 2
            if fits(middle):
                best, pools = middle, [pool]
            else:
                too_much = middle
    return Cap(best, pools) if pools else None


class _Asked:
    """What one GPU of a job adds to what idles in a pool, under some cap."""

    __slots__ = ("_idle_watts", "_node", "_request", "_snapshot", "all_watts")

    def __init__(self, snapshot: Snapshot, request: JobRequest, pool: int) -> None:
        plant = snapshot.plant
        self._snapshot, self._request = snapshot, request
        self._node = plant.bays[plant.bays_of_pool[pool][0]].first
        device = plant.spots[self._node].node.device
        self._idle_watts = device.idle_watts if device else 0.0
        self.all_watts = self.watts(100)

    def watts(self, hundredths: int) -> float:
        peak = peak_watts_on(self._request, self._snapshot.plant, self._node, 1, hundredths / 100.0)
        return max(0.0, peak - self._idle_watts)
