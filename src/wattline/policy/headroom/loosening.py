"""Loosening: where may shapes that are known to have fitted nowhere fit now?

Where nothing was loosened it is as it was; where there is less room than one needs it does not fit, and will
not before more is loosened. What does not fit does not fit for more watts or more GPUs either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wattline.policy.headroom.leeway import ROUNDING, tightest_watts
from wattline.policy.headroom.power import headroom_of
from wattline.policy.headroom.rooms import Rooms
from wattline.spec.policy import Policy
from wattline.state import JobRequest, Kind, Line, Snapshot

_Size = tuple[float, tuple[str, ...], bool]  # watts of each GPU, and the rest of a kind

_NONE = math.nan  # no watts fail: as much as a GPU can draw has no bound, and nothing is at or above this


class _Bounds:
    """Of one kind: the fewest watts of each GPU that fit nowhere, and the most that may, and where."""

    __slots__ = ("failing", "least_failing", "most_passing", "pool")

    def __init__(self) -> None:
        self.failing: dict[int, float] = {}  # by pool, the fewest that do not fit there
        self.least_failing, self.most_passing, self.pool = _NONE, -math.inf, -1


class Loosened:
    """Good for one decision, in which room is taken and none is given back."""

    __slots__ = (
        "_bounds",
        "_draft",
        "_headroom",
        "_most_gpus",
        "_pools",
        "_power_fraction",
        "_rooms",
        "_shared_watts",
        "_smallest_failing",
    )

    def __init__(
        self, draft: Snapshot, policy: Policy, pools: Sequence[int], power_fraction: float = 1.0
    ) -> None:
        self._draft, self._pools, self._power_fraction = draft, pools, power_fraction
        self._headroom = headroom_of(draft, policy.thresholds)
        self._rooms = Rooms.of(draft, policy.thresholds)
        self._bounds: dict[Kind, _Bounds] = {}
        self._smallest_failing: dict[_Size, int] = {}  # the fewest GPUs of some watts that fit nowhere
        self._shared_watts: dict[int, float] = {}  # by pool, what is left of what carries all of it
        self._most_gpus: dict[float, float] = {}  # by watts of each, how many that carries, wherever most

    def may_fit_line(self, line: Line) -> bool:
        """The same of the first in a line."""
        kind, watts = line.kind, line.watts
        # Where power is short this answers for nearly all who wait, wherever they would stand.
        most_gpus = self._most_gpus.get(watts)
        if most_gpus is not None and most_gpus < kind[0]:
            return False
        bounds = self._bounds.get(kind)
        if bounds is not None:
            if watts <= bounds.most_passing:
                return True
            if watts >= bounds.least_failing:
                return False
        if most_gpus is None and self._carry_gpus(watts) < kind[0]:
            return False
        return self._may_fit(self._draft.jobs[line.order[3]].request, kind, watts)

    def may_fit(self, request: JobRequest) -> bool:
        """Whether any pool that was loosened may carry a job by now; none does for most, most of the time."""
        return self._may_fit(request, request.kind, request.each_watts)

    def _may_fit(self, request: JobRequest, kind: Kind, watts: float) -> bool:
        if not self._pools:
            return False
        bounds = self._bounds.get(kind)
        if bounds is None:
            bounds = self._bounds[kind] = _Bounds()
        if watts <= bounds.most_passing:
            return True
        gpus, size = kind[0], (watts, *kind[1:])
        if watts >= bounds.least_failing or gpus >= self._smallest_failing.get(size, math.inf):
            return False
        failing = bounds.failing
        for pool in self._pools:
            if watts >= failing.get(pool, _NONE):
                continue
            if self._fits_in(request, pool):
                bounds.most_passing, bounds.pool = watts, pool
                return True
            failing[pool] = watts
        bounds.least_failing, self._smallest_failing[size] = watts, gpus
        return False

    def pools(self, request: JobRequest) -> list[int]:
        """Those of which it is not known that they do not carry it; none where it fits in none."""
        kind, watts = request.kind, request.each_watts
        if not self._may_fit(request, kind, watts):
            return []
        failing = self._bounds[kind].failing
        return [pool for pool in self._pools if not watts >= failing.get(pool, _NONE)]

    def open(self, pools: Sequence[int]) -> None:
        """There is more room in these pools than was known: nothing is kept there any more."""
        self._pools = sorted({*self._pools, *pools})
        self._smallest_failing.clear()
        self._shared_watts.clear()
        self._most_gpus.clear()
        for bounds in self._bounds.values():
            bounds.least_failing = _NONE
            bounds.failing.clear()

    def take(self, site: str) -> None:
        """Somebody took a place at a site: there is less room than there was."""
        plant = self._draft.plant
        self._most_gpus.clear()
        for pool in plant.pools_of_site[plant.site_numbers[site]]:
            self._shared_watts.pop(pool, None)
        for bounds in self._bounds.values():
            if bounds.pool >= 0 and plant.pools[bounds.pool][0] == site:
                bounds.most_passing, bounds.pool = -math.inf, -1

    def _fits_in(self, request: JobRequest, pool: int) -> bool:
        if request.elastic is not None:
            request = request.at_width(request.elastic.least)
        if request.gpu_models and self._draft.plant.pools[pool][1] not in request.gpu_models:
            return False
        if self._draft.free_in(pool) < request.gpus:  # neither on one node nor on several
            return False
        each_watts, fraction = request.each_watts, self._power_fraction
        if self._shared(pool) < self._rooms.added_watts(each_watts, fraction)[pool] * (
            request.gpus - ROUNDING
        ):
            return False
        room = self._rooms.room(self._draft, self._headroom, each_watts, pool, fraction)
        return room.fits(request.gpus) or (request.may_spread and room.may_spread(request.gpus))

    def _carry_gpus(self, watts: float) -> float:
        """How many such GPUs are carried by what carries all of a pool, in that which carries most."""
        most, added, shared = 0.0, self._rooms.added_watts(watts, self._power_fraction), self._shared
        for pool in self._pools:
            each_watts = added[pool]
            carried = shared(pool) / each_watts + 2.0 * ROUNDING if each_watts > 0.0 else math.inf
            if carried > most:
                most = carried
        self._most_gpus[watts] = most
        return most

    def _shared(self, pool: int) -> float:
        """What is left of what carries all of a pool."""
        shared_watts = self._shared_watts.get(pool)
        if shared_watts is None:
            above = self._draft.plant.common_above[pool]
            shared_watts = self._shared_watts[pool] = tightest_watts(self._headroom, above)
        return shared_watts
