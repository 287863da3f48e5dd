"""Loosening: where may shapes that are known to have fitted nowhere fit now?

Where nothing was loosened it is as it was; where there is less room than one needs it does not fit, and will
not before more is loosened. What does not fit does not fit for more watts or more GPUs either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wattline.policy.gang import ONE_NODE
from wattline.policy.power import headroom_of
from wattline.policy.rooms import Rooms, limit_of_each
from wattline.spec.policy import Policy
from wattline.state import JobRequest, Snapshot


class Loosened:
    """Good for one decision, in which room is taken and none is given back."""

    __slots__ = (
        "_biggest_passing",
        "_draft",
        "_headroom",
        "_least_failing",
        "_most_passing",
        "_pools",
        "_power_fraction",
        "_rooms",
        "_smallest_failing",
    )

    def __init__(
        self, draft: Snapshot, policy: Policy, pools: Sequence[int], power_fraction: float = 1.0
    ) -> None:
        self._draft, self._pools, self._power_fraction = draft, pools, power_fraction
        self._headroom = headroom_of(draft, policy.thresholds)
        self._rooms = Rooms.of(draft, policy.thresholds)
        # By kind, the fewest watts of each GPU that fit nowhere, and the most that may until more is taken.
        self._least_failing: dict[_Kind, float] = {}
        self._most_passing: dict[_Kind, float] = {}
        # By watts, the fewest GPUs that fit nowhere, and the most that may until more is taken.
        self._smallest_failing: dict[_Size, int] = {}
        self._biggest_passing: dict[_Size, int] = {}

    def may_fit(self, request: JobRequest) -> bool:
        """Whether any pool that was loosened may carry a job by now; none does for most, most of the time."""
        if not self._pools:
            return False
        kind, watts = _kind_of(request), _watts_of(request)
        failing = self._least_failing.get(kind)
        if failing is not None and watts >= failing:
            return False
        if watts <= self._most_passing.get(kind, -math.inf):
            return True
        gpus, size = request.gpus, (watts, *kind[1:])
        smallest = self._smallest_failing.get(size)
        if smallest is not None and gpus >= smallest:
            return False
        if gpus <= self._biggest_passing.get(size, -1):
            return True
        fits = any(self._fits_in(request, pool) for pool in self._pools)
        if fits:
            self._most_passing[kind], self._biggest_passing[size] = watts, gpus
        else:
            self._least_failing[kind], self._smallest_failing[size] = watts, gpus
        return fits

    def pools(self, request: JobRequest) -> list[int]:
        """Those that may carry it."""
        return [pool for pool in self._pools if self._fits_in(request, pool)]

    def open(self, pools: Sequence[int]) -> None:
        """There is more room in these pools than was known: nothing is kept there any more."""
        self._pools = sorted({*self._pools, *pools})
        self._least_failing.clear()
        self._smallest_failing.clear()

    def take(self) -> None:
        """Somebody took a place: there is less room than there was."""
        self._most_passing.clear()
        self._biggest_passing.clear()

    def _fits_in(self, request: JobRequest, pool: int) -> bool:
        if request.gpu_models and self._draft.plant.pools[pool][1] not in request.gpu_models:
            return False
        room = self._rooms.room(self._draft, self._headroom, request, pool, self._power_fraction)
        return room.fits(request.gpus) or (_may_spread(request) and room.may_spread(request.gpus))


_Kind = tuple[int, tuple[str, ...], bool]  # GPUs, their models, and whether they may be spread
_Size = tuple[float, tuple[str, ...], bool]  # the same for so many watts of each


def _kind_of(request: JobRequest) -> _Kind:
    return (request.gpus, request.gpu_models, _may_spread(request))


def _may_spread(request: JobRequest) -> bool:
    return request.gpus > 1 and request.locality not in ONE_NODE


def _watts_of(request: JobRequest) -> float:
    each = limit_of_each(request)
    return math.inf if each is None else each
