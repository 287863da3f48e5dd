"""Dividing: who gets how many watts of what is there, so that the most useful work gets done?

A job that runs loses little with the first watts taken from it and more with each further one, so among
running jobs the next watt goes where it brings most: all end on the same brink. Whether a job runs at all is
the hard part: beginning takes many watts at once. A job that may be off is therefore first weighed by the
best it makes of its watts, all at once, and only then by the watt. Where its first step does not fit into
what is left, both ways are tried: off, and on with less for the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

OFF = -1
_ROUNDING_WATTS = 1e-6


class Level(NamedTuple):
    """One way to run a job: a cap, the watts it then takes, and how fast it is. Of one GPU."""

    fraction: float
    watts: float
    speed: float


class _Step(NamedTuple):
    """From one level on the upper hull to the next."""

    speed_per_watt: float
    to: int  # the level it ends at
    watts: float  # of one GPU, more than before


@dataclass(frozen=True, eq=False)
class Menu:
    """All levels of one kind of job, the least watts first; what it takes off, None: it cannot be."""

    levels: tuple[Level, ...]
    off_watts: float | None = None

    @cached_property
    def steps(self) -> tuple[_Step, ...]:
        """The upper hull: levels that no mix of two others beats, each step worth less than the last."""
        points = [(level.watts, level.speed, index) for index, level in enumerate(self.levels)]
        if self.off_watts is not None:
            points.insert(0, (self.off_watts, 0.0, OFF))
        hull = points[:1]
        for point in points[1:]:
            while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], point):
                hull.pop()
            if point[1] > hull[-1][1]:
                hull.append(point)
        return tuple(
            [_Step(_slope(left, right), right[2], right[0] - left[0]) for left, right in pairwise(hull)]
        )

    @cached_property
    def hull(self) -> tuple[int, ...]:
        """Where its steps lead, from where it begins."""
        begins_at = 0 if self.off_watts is None else OFF
        return (begins_at, *[step.to for step in self.steps])

    @property
    def top(self) -> int:
        """The first level at which it is as fast as it can be."""
        return self.hull[-1]

    @property
    def least_watts(self) -> float:
        return self.levels[0].watts if self.off_watts is None else self.off_watts

    def watts(self, level: int) -> float:
        return (self.off_watts or 0.0) if level == OFF else self.levels[level].watts

    def speed(self, level: int) -> float:
        return 0.0 if level == OFF else self.levels[level].speed

    def highest_within(self, watts: float) -> int | None:
        """The last level that takes no more than so many watts."""
        found = bisect_right(self._watts, watts + _ROUNDING_WATTS) - 1
        return found if found >= 0 else None

    @cached_property
    def _watts(self) -> tuple[float, ...]:
        return tuple([level.watts for level in self.levels])

    def part(self, first: int, last: int) -> Menu:
        """Some of the levels, for a job that may not be turned off. Worked out once: menus are kept."""
        known = self._parts.get((first, last))
        if known is None:
            known = self._parts[first, last] = Menu(self.levels[first : last + 1])
        return known

    @cached_property
    def _parts(self) -> dict[tuple[int, int], Menu]:
        return {}


def _slope(left: tuple[float, float, int], right: tuple[float, float, int]) -> float:
    return (right[1] - left[1]) / max(right[0] - left[0], _ROUNDING_WATTS)


class Sharer(NamedTuple):
    """A job that takes part: its GPUs, how much its work counts, its levels, and the bounds it is under."""

    gpus: int
    menu: Menu
    bounds: tuple[tuple[int, float], ...] = ((0, 1.0),)  # number of the bound, share of its watts that counts
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Division:
    levels: list[int]  # by sharer; OFF where it does not run
    speed: float  # GPUs' worth of work, weighted
    # By bound, at least so much; below zero where the least that all take is more than there is.
    left_watts: list[float]

    @property
    def fits(self) -> bool:
        return min(self.left_watts, default=0.0) >= -_ROUNDING_WATTS


def divide(sharers: Sequence[Sharer], bounds_watts: Sequence[float]) -> Division:
    """The best division found: within a job's worth of the optimum of the relaxed problem.

    Like jobs take their steps together, so that this costs what there is of different jobs, not of jobs.
    """
    found, blocked = _divide(sharers, bounds_watts)
    if blocked is None or not found.fits:
        return found
    squeezed = list(sharers)
    menu = sharers[blocked].menu
    squeezed[blocked] = sharers[blocked]._replace(menu=menu.part(0, len(menu.levels) - 1))
    other, _ = _divide(squeezed, bounds_watts)
    return other if other.fits and other.speed > found.speed else found


@dataclass(slots=True)
class _Group:
    """Jobs alike: whoever comes first takes a step first."""

    sharer: Sharer
    members: list[int]
    counts: list[int]  # by level of its hull: how many have come so far; the first all have


def _divide(sharers: Sequence[Sharer], bounds_watts: Sequence[float]) -> tuple[Division, int | None]:
    groups = _group(sharers)
    like, left = _tight_bounds(groups, bounds_watts)
    kept = sorted(set(like.values()))
    if len(kept) < len(bounds_watts):
        groups = _regroup(groups, {bound: number for number, bound in enumerate(kept)})
    levels, speed, left_of_kept, blocked = _fill(
        groups, [bounds_watts[bound] for bound in kept], len(sharers)
    )
    for bound, same in like.items():
        left[bound] = left_of_kept[kept.index(same)] + bounds_watts[bound] - bounds_watts[same]
    return Division(levels, speed, left), blocked


def _group(sharers: Sequence[Sharer]) -> list[_Group]:
    groups: dict[tuple[int, int, tuple[tuple[int, float], ...], float], _Group] = {}
    for number, sharer in enumerate(sharers):
        key = (id(sharer.menu), sharer.gpus, sharer.bounds, sharer.weight)
        group = groups.get(key)
        if group is None:
            groups[key] = _Group(sharer, [number], [0])
        else:
            group.members.append(number)
    return list(groups.values())


def _tight_bounds(
    groups: Sequence[_Group], bounds_watts: Sequence[float]
) -> tuple[dict[int, int], list[float]]:
    """Bounds that could be too little, each with the tightest that carries the same; and what each leaves
    with all at their fastest."""
    left = list(bounds_watts)
    columns: list[list[tuple[int, float]]] = [[] for _ in bounds_watts]
    for number, group in enumerate(groups):
        menu = group.sharer.menu
        _take(left, group.sharer, max(menu.least_watts, menu.watts(menu.top)), len(group.members))
        for bound, share in group.sharer.bounds:
            columns[bound].append((number, share))
    alike: dict[tuple[tuple[int, float], ...], list[int]] = {}
    for bound, watts in enumerate(left):
        if watts < 0.0:
            alike.setdefault(tuple(columns[bound]), []).append(bound)
    like = {
        bound: min(bounds, key=lambda each: bounds_watts[each])
        for bounds in alike.values()
        for bound in bounds
    }
    return like, left


def _regroup(groups: Sequence[_Group], kept: Mapping[int, int]) -> list[_Group]:
    """With fewer bounds more are alike."""
    shorter: dict[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]] = {}
    found: dict[tuple[int, int, tuple[tuple[int, float], ...], float], _Group] = {}
    for group in groups:
        sharer = group.sharer
        under = shorter.get(sharer.bounds)
        if under is None:
            under = tuple([(kept[bound], share) for bound, share in sharer.bounds if bound in kept])
            shorter[sharer.bounds] = under
        same = found.setdefault(
            (id(sharer.menu), sharer.gpus, under, sharer.weight),
            _Group(sharer._replace(bounds=under), [], [0]),
        )
        same.members += group.members
    for group in found.values():
        group.members.sort()
    return list(found.values())


def _fill(
    groups: list[_Group], bounds_watts: Sequence[float], jobs: int
) -> tuple[list[int], float, list[float], int | None]:
    """Take steps by their worth while they fit: levels, speed, what is left; and the first job that was left
    off for want of room."""
    left = list(bounds_watts)
    steps: list[tuple[float, int, int, float]] = []
    for number, group in enumerate(groups):
        members, sharer = len(group.members), group.sharer
        if not sharer.bounds:  # nothing stops these
            group.counts = [members] * len(sharer.menu.hull)
            continue
        group.counts = [members]
        _take(left, sharer, sharer.menu.least_watts, members)
        for index, step in enumerate(sharer.menu.steps):
            steps.append((-step.speed_per_watt * sharer.weight, number, index, sharer.gpus * step.watts))
    blocked: int | None = None
    for _, number, index, watts in sorted(steps):
        group = groups[number]
        come = fitting = group.counts[index]
        if come:
            bounds, asked = group.sharer.bounds, watts - _ROUNDING_WATTS
            for bound, share in bounds:
                if come * asked * share > left[bound] and asked > 0.0:
                    fitting = min(fitting, int(max(0.0, left[bound]) / (asked * share)))
            for bound, share in bounds:
                left[bound] -= fitting * watts * share
        group.counts.append(fitting)
        if fitting < come and blocked is None and index == 0 and group.sharer.menu.off_watts is not None:
            blocked = group.members[fitting]
    levels, speed = [0] * jobs, 0.0
    for group in groups:
        speed += _settle(group, left, levels)
    return levels, speed, left, blocked


def _settle(group: _Group, left: list[float], levels: list[int]) -> float:
    """Give each its level, the first of those that were stopped a little more; what all do then."""
    menu, sharer, speed = group.sharer.menu, group.sharer, 0.0
    bounds = [*group.counts[1:], 0]
    for level, come, further in zip(menu.hull, group.counts, bounds, strict=True):
        is_stopped = level != menu.top
        for place in range(further, come):
            now = level
            if is_stopped:
                now = _top_up(left, sharer, level)
                is_stopped = now != level  # where one finds nothing more, neither does the next
            levels[group.members[place]] = now
            speed += sharer.weight * sharer.gpus * menu.speed(now)
    return speed


def _top_up(left: list[float], sharer: Sharer, level: int) -> int:
    """As far beyond a level as what is left over reaches, on levels between the hull's."""
    menu, now_watts = sharer.menu, sharer.menu.watts(level)
    room = min([left[bound] / share for bound, share in sharer.bounds if share > 0.0], default=0.0)
    best = menu.highest_within(now_watts + room / sharer.gpus)
    if best is None or best <= level or menu.speed(best) <= menu.speed(level):
        return level
    best = min(best, menu.top)
    _take(left, sharer, menu.watts(best) - now_watts, 1)
    return best


def _take(left: list[float], sharer: Sharer, watts: float, jobs: int) -> None:
    for bound, share in sharer.bounds:
        left[bound] -= jobs * sharer.gpus * watts * share
