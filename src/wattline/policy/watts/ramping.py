"""Ramping: how much was added to a feed within the last minute, and how much would a job add?

What counts is what jobs may draw that began or were raised in that time, those included that are on their way
and will begin any moment. A job that has ended does not count: what it added is gone. Starts are counted the
same way, each for one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from wattline.facility import Starts
from wattline.physics import predict_other_watts
from wattline.policy.headroom.carrying import part_carried
from wattline.policy.watts.pacing import Gauge, add_all
from wattline.policy.watts.recent import Recent
from wattline.spec.policy import Policy
from wattline.state import BEGINNINGS, Action, ActionKind, Job, Place, Snapshot
from wattline.state.claim import taking_of
from wattline.state.job import RAMP_SECONDS

RAMP_RULE = "ramp.supply"
_ADJUSTMENTS = frozenset({ActionKind.CAP_POWER, ActionKind.SHRINK_BATCH})

Amounts = dict[int, int]  # watts by supply
Asked = list[tuple[Gauge, int]]


class Ramps:
    """All gauges of a facility as they stand at the beginning of a decision."""

    def __init__(self, draft: Snapshot, policy: Policy) -> None:
        self._draft, plant = draft, draft.plant
        usable = 1.0 - policy.thresholds.power_margin
        self.supplies = {
            supply: Gauge(RAMP_RULE, plant.resources[supply].name, math.floor(watts * usable), RAMP_SECONDS)
            for supply, watts in plant.ramped.items()
        }
        self._parts: dict[int, float] = {}  # by rack
        self._starts: dict[str, list[Gauge]] = {}
        self._loads: dict[str, list[Gauge]] = {}
        for name, site in plant.sites.items():
            said = [each for each in (site.starts, policy.starts.starts) if each.is_on]
            self._starts[name] = [gauge for starts in said for gauge in _start_gauges(name, starts)]
            self._loads[name] = [gauge for starts in said for gauge in _load_gauges(name, starts)]
        by_site = [*self._starts.values(), *self._loads.values()]
        gauges = [*self.supplies.values(), *[gauge for each in by_site for gauge in each]]
        if gauges:
            self._look_back(max([gauge.span_seconds for gauge in gauges]))

    def asked(self, job: Job, place: Place, power_fraction: float) -> Asked:
        """What a job that begins adds."""
        return self._asked_of(job, place, self.amounts(job, place, power_fraction))

    def more(self, job: Job, action: Action) -> Asked:
        """What a raise of a cap or of a batch adds."""
        if job.place is None or action.kind not in _ADJUSTMENTS:
            return []
        power, batch = job.power_fraction, job.in_flight_fraction
        before = self.amounts(job, job.place, power, batch)
        if action.kind is ActionKind.CAP_POWER:
            after = self.amounts(job, job.place, action.fraction, batch)
        else:
            after = self.amounts(job, job.place, power, action.fraction)
        return self._beyond(before, after)

    def amounts(self, job: Job, place: Place, power_fraction: float, batch: float = 1.0) -> Amounts:
        """What a job adds to each supply that has a ramp: its claim, and what the boxes around it take."""
        if not self.supplies:
            return {}
        plant = self._draft.plant
        amounts: dict[int, float] = {}
        for name, gpus in place.nodes:
            node = plant.node_number[name]
            spot, own = (
                plant.spots[node],
                dict(taking_of(job.request, plant, node, gpus, power_fraction).amounts),
            )
            part = gpus / spot.node.gpus if spot.node.gpus else 0.0
            idle_watts = predict_other_watts(spot.node.other_watts, 0.0)
            box_watts = part * (predict_other_watts(spot.node.other_watts, 1.0) - idle_watts)
            for supply, share in spot.power:
                if supply in self.supplies:
                    watts = own.get(supply, 0) * batch + box_watts * share
                    amounts[supply] = amounts.get(supply, 0.0) + watts * self._part_carried(node, supply)
        return {supply: math.ceil(watts) for supply, watts in amounts.items()}

    def _part_carried(self, node: int, supply: int) -> float:
        """Of what counts on both of a pair, the half that each carries while both are there."""
        rack = self._draft.plant.spots[node].power[0][0]
        known = self._parts.get(rack)
        if known is None:
            known = self._parts[rack] = part_carried(self._draft, node, supply)
        return known

    def _look_back(self, longest_seconds: float) -> None:
        draft = self._draft
        for job in Recent.of(draft).since(draft, draft.at - longest_seconds - 1.0):
            self._add_begun(job)
        flights = [flight for flight in draft.flights.values() if not flight.action.node]
        for flight in flights:
            job, action = draft.job(flight.action.job), flight.action
            # What is on its way counts as if it began now, until it has.
            if action.kind in BEGINNINGS and action.place is not None and job.started_at is None:
                add_all(self.asked(job, action.place, action.fraction), draft.at)
            else:
                add_all(self.more(job, action), draft.at)

    def _add_begun(self, job: Job) -> None:
        if job.place is None or job.started_at is None:
            return
        now = (job.power_fraction, job.in_flight_fraction)
        at_first = self.amounts(job, job.place, *(now if job.lifted_at is None else job.lifted_from))
        add_all(self._asked_of(job, job.place, at_first), job.started_at)
        if job.lifted_at is not None:
            add_all(self._beyond(at_first, self.amounts(job, job.place, *now)), job.lifted_at)

    def _asked_of(self, job: Job, place: Place, amounts: Amounts) -> Asked:
        asked = [(self.supplies[supply], watts) for supply, watts in amounts.items() if watts > 0]
        asked += [(gauge, 1) for gauge in self._starts[place.site]]
        if job.saved is not None:
            asked += [(gauge, 1) for gauge in self._loads[place.site]]
        return asked

    def _beyond(self, before: Amounts, after: Amounts) -> Asked:
        more = [(supply, watts - before.get(supply, 0)) for supply, watts in after.items()]
        return [(self.supplies[supply], watts) for supply, watts in more if watts > 0]


def _start_gauges(site: str, starts: Starts) -> Iterator[Gauge]:
    if starts.at_once is not None:
        yield Gauge("starts.at_once", site, starts.at_once, starts.within_seconds)
    if starts.spacing_seconds > 0.0:
        yield Gauge("starts.spacing", site, 1, starts.spacing_seconds)


def _load_gauges(site: str, starts: Starts) -> Iterator[Gauge]:
    if starts.loads_at_once is not None:
        yield Gauge("starts.loads_at_once", site, starts.loads_at_once, starts.within_seconds)
