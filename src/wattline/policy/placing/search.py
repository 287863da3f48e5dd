"""Search: what is asked, what is free, and which places were the best and the closest so far."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from wattline.policy.headroom.heat import Coolness, judge_heat
from wattline.policy.headroom.power import UNITS, Headroom, headroom_of, judge_claim
from wattline.policy.headroom.roomiest import Roomiest, carriers, nearest_zones
from wattline.policy.headroom.rooms import Room, Rooms, zone_spans
from wattline.policy.permitting.exceptions import BUDGETS
from wattline.policy.permitting.permission import judge_budget
from wattline.policy.permitting.pools import transfer_usd
from wattline.policy.placing.gang import Spread
from wattline.policy.placing.objective import place_score, transfer_score
from wattline.policy.placing.shortfall import distance
from wattline.spec.policy import Policy
from wattline.state import (
    Claim,
    JobRequest,
    Place,
    Snapshot,
    Verdict,
    claim_of,
    peak_watts_on,
)
from wattline.state.claim import saving_of, taking_of

# This many feasible places are looked at, the cheapest first, before the best of them is taken.
ENOUGH = 2
_ROUNDING = 1e-9  # sums of shortfalls are alike to so much, whatever was added first

Nodes = tuple[tuple[int, int], ...]  # node number, GPUs


class Search:
    """One search for a place."""

    __slots__ = (
        "_changes",
        "_closest_distance",
        "_coolness",
        "_each_watts",
        "_full",
        "_headroom",
        "_is_team",
        "_near",
        "_noted",
        "_policy",
        "_power_fraction",
        "_request",
        "_rooms",
        "_snapshot",
        "best",
        "best_place",
        "best_score",
        "closest",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        request: JobRequest,
        power_fraction: float,
        near: str | None,
    ) -> None:
        self._snapshot, self._policy, self._request = snapshot, policy, request
        self._power_fraction, self._near = power_fraction, near
        self._is_team = request.project in policy.teams
        self._headroom: Headroom = headroom_of(snapshot, policy.thresholds)
        self._rooms = Rooms.of(snapshot, policy.thresholds)
        self._each_watts = request.each_watts
        self._full = self._rooms.full(self._each_watts, power_fraction)
        self._changes = snapshot.site_changes(policy.thresholds.reading_max_age)
        self._coolness = Coolness(snapshot, request, policy.thresholds)
        self.best: Nodes = ()
        self.best_place: Place | None = None  # the same, where it was named to be weighed
        self.best_score = math.inf
        self.closest: Nodes = ()
        self._closest_distance = math.inf
        # How far off at least, whether it is laid out, in which order it was met, where, and which nodes.
        self._noted: list[tuple[float, bool, tuple[int, int], int, Nodes]] = []

    def unfilled(self, pools: Iterable[tuple[float, int]]) -> Iterator[tuple[float, int]]:
        """Without those where a job no bigger was found not to fit and nothing has changed since."""
        changes = self._changes
        if changes is None or not self._full:
            yield from pools
            return
        full, gpus, site_of_pool = self._full, self._request.gpus, self._snapshot.plant.site_of_pool
        for priced in pools:
            found = full.get(priced[1])
            if found is None or gpus < found[1] or changes[site_of_pool[priced[1]]] != found[0]:
                yield priced

    def note_full(self, pool: int) -> None:
        if self._changes is not None:
            changes = self._changes[self._snapshot.plant.site_of_pool[pool]]
            self._full[pool] = (changes, self._request.gpus)

    def room(self, pool: int) -> Room:
        return self._rooms.room(self._snapshot, self._headroom, self._each_watts, pool, self._power_fraction)

    def weigh_single(self, pool: int, cost: float, room: Room) -> int:
        """Weigh places on one node, tightest fit first; how many were found to fit."""
        snapshot, request, plant = self._snapshot, self._request, self._snapshot.plant
        gpus, cpus, headroom = request.gpus, request.cpus, self._headroom
        bays, spots, floor = plant.bays, plant.spots, math.floor
        if room.is_full(gpus):
            return 0
        saving = saving_of(request, plant.pools[pool][0], plant)
        if saving and not self._carries(saving):
            return 0
        if self._near is not None:
            cost += self._transfer_cost(pool)
        fitting, spans, least_watts = 0, zone_spans(plant), room.least_watts(gpus)
        fits_in: dict[int, bool] = {}  # by zone
        for leftover, nodes in enumerate(snapshot.nodes_by_free(pool)[gpus:]):
            position = 0
            while position < len(nodes):
                node = nodes[position]
                number = spots[node].bay
                bay = bays[number]
                fits = fits_in.get(bay.zone)
                if fits is None:
                    fits = fits_in[bay.zone] = room.fits_in(bay.zone, gpus)
                if not fits:
                    position = bisect_left(nodes, spans[number], position)
                    continue
                # Nodes of one bay with as much free fit or fail alike, but for their own heat and CPUs.
                next_position = bisect_left(nodes, bay.ends_before, position)
                if floor(headroom[bay.rack_resource]) < least_watts:
                    position = next_position
                    continue
                position += 1
                if snapshot.cpus_free(node) < cpus:
                    continue
                taking = taking_of(request, plant, node, gpus, self._power_fraction)
                amount = taking.loop_amount
                warmth = self._coolness.share(node, taking.gpu_watts, amount) if gpus else 0.0
                if warmth is None or not gpus:
                    if not self._look_closer(((node, gpus),), cost, leftover):
                        continue
                elif self._is_team and not self._is_affordable(((node, gpus),)):
                    continue
                else:
                    left = min(room.above_watts(bay.zone), headroom[bay.rack_resource]) - amount
                    self._note_best(((node, gpus),), cost, warmth, left, leftover)
                position = next_position
                fitting += 1
                if fitting >= ENOUGH:
                    return fitting
        return fitting

    def weigh_gangs(self, pool: int, cost: float, room: Room) -> None:
        """Weigh arrangements over several nodes; where none is carried, those that show what is short."""
        tried = 0
        for nodes in self._spread().places(pool, room):
            tried += self.weigh(nodes, cost + self._transfer_cost(pool))
            if tried >= ENOUGH:
                return

    def note_gangs(self, pool: int) -> None:
        """Have it shown what is short in a pool, if that may be closer than all else."""
        least = max(0.0, self._missing_in_common(pool) - _ROUNDING)
        self._noted.append((least, False, (len(self._noted), 0), pool, ()))

    def weigh_noted(self) -> None:
        """Weigh of what gangs show whatever may be closer than all else; the nearest first.

        The pool in which what all of it hangs on lacks least, but something, comes before: it is not further
        off than that, most of the time, and of most of the others a few racks show that they are.
        """
        noted, spread = self._noted, self._spread()
        lacking = min([each for each in noted if each[0] > 0.0], default=None)
        if lacking is not None:
            noted.remove(lacking)
            for shown in spread.places(lacking[3], None):
                self.weigh(shown, 0.0)
        heapify(noted)
        while noted:
            bound, is_laid_out, (number, _), pool, nodes = heappop(noted)
            if bound >= self._closest_distance:
                return
            if is_laid_out:
                self.weigh(nodes, 0.0)
                continue
            room = self.room(pool)
            for domain, shown in enumerate(spread.places(pool, None)):
                least = spread.least_missing(shown, room, self._closest_distance)
                heappush(noted, (least, True, (number, domain), pool, shown))

    def _spread(self) -> Spread:
        return Spread(
            snapshot=self._snapshot,
            thresholds=self._policy.thresholds,
            request=self._request,
            power_fraction=self._power_fraction,
            headroom=self._headroom,
        )

    def weigh(self, nodes: Nodes, cost: float) -> bool:
        """Weigh one arrangement; whether it fits."""
        snapshot, place = self._snapshot, self.place(nodes)
        claim = claim_of(self._request, place, snapshot.plant, self._power_fraction)
        if not self._carries(claim.amounts):
            self._note_closest(nodes, self._missing(claim.amounts))
            return False
        warmth = self._warmth(claim)
        leftover = sum([snapshot.gpus_free(node) - gpus for node, gpus in nodes])
        if warmth is None:
            return self._look_closer(nodes, cost, leftover, claim)
        if self._is_team and not self._is_affordable(nodes):
            return False
        if self._note_best(nodes, cost, warmth, self._least_watts(claim), leftover):
            self.best_place = place
        return True

    def is_farther(self, pool: int) -> bool:
        """Whether what all of a pool hangs on is further from carrying the job than some place already is."""
        if self._closest_distance == math.inf:
            return False
        missing = self._missing_in_common(pool)
        return missing > 0.0 and missing >= self._closest_distance

    def _missing_in_common(self, pool: int) -> float:
        """How far what all of a pool hangs on is from carrying the job."""
        watts, missing = self._request.gpus * self.room(pool).each_watts, 0.0
        for resource, share in self._snapshot.plant.common_above[pool] if watts else ():
            missing += max(0.0, 1.0 - self._headroom[resource] / (watts * share))
        return missing

    def look_for_closest(self, pool: int) -> None:
        """Weigh the roomiest rack of zones that may be closer: the closest says what a job waits for."""
        snapshot, request, plant = self._snapshot, self._request, self._snapshot.plant
        gpus, headroom, by_bay = request.gpus, self._headroom, carriers(plant)
        saving = saving_of(request, plant.pools[pool][0], plant)
        roomiest = Roomiest.of(snapshot, self._policy.thresholds)
        for bound, zone in nearest_zones(snapshot, headroom, request, pool, self.room(pool)):
            if bound >= self._closest_distance:
                break
            node = roomiest.node(snapshot, headroom, request, zone)
            if node is None:
                continue
            spot = plant.spots[node]
            device = spot.node.device
            peak = peak_watts_on(request, plant, node, gpus, self._power_fraction)
            watts = max(0.0, peak - gpus * (device.idle_watts if device else 0.0))
            amounts = [(one, math.ceil(watts * share)) for one, share in by_bay[spot.bay]]
            missing = self._missing(sorted(amounts + saving) if saving else amounts)
            if missing > 0.0:
                self._note_closest(((node, gpus),), missing)
            else:
                self._look_closer(((node, gpus),), 0.0, 0)

    def place(self, nodes: Nodes) -> Place:
        spots = self._snapshot.plant.spots
        site = spots[nodes[0][0]].site.name
        return Place(site, tuple([(spots[node].node.name, gpus) for node, gpus in nodes]))

    def judge(self, place: Place, claim: Claim | None = None) -> tuple[Verdict, ...]:
        """Everything that is asked of a place, each rule with its verdict."""
        snapshot, policy, request = self._snapshot, self._policy, self._request
        claim = claim or claim_of(request, place, snapshot.plant, self._power_fraction)
        verdicts = judge_claim(snapshot, claim, policy.thresholds, request.job)
        verdicts += self._judge_heat(claim)
        if self._is_team:
            verdicts += judge_budget(snapshot, request, place, self._power_fraction, policy)
        return tuple(verdicts)

    def _judge_heat(self, claim: Claim) -> list[Verdict]:
        if len(claim.nodes) == 1 and claim.gpu_watts:  # most jobs, and most of those stay cool
            plant, (node, gpus) = self._snapshot.plant, claim.nodes[0]
            taking = taking_of(self._request, plant, node, gpus, self._power_fraction)
            cool = self._coolness.judge(node, claim.gpu_watts, taking.loop_amount)
            if cool is not None:
                return [cool]
        return judge_heat(self._snapshot, self._request, claim, self._policy.thresholds)

    def _carries(self, amounts: Iterable[tuple[int, int]]) -> bool:
        headroom = self._headroom
        for resource, amount in amounts:  # noqa: SIM110 - most are few, and a generator costs as much
            if headroom[resource] < amount:
                return False
        return True

    def _missing(self, amounts: Iterable[tuple[int, int]]) -> float:
        """How far a place is from fitting: shortfalls relative to what was asked, summed."""
        headroom = self._headroom
        return sum(
            [max(0.0, amount - headroom[resource]) / amount for resource, amount in amounts if amount > 0]
        )

    def _least_watts(self, claim: Claim) -> float:
        """What is left of the tightest thing that carries watts."""
        kinds = self._snapshot.plant.kinds
        carrying = [(one, amount) for one, amount in claim.amounts if UNITS[kinds[one]] == "watts"]
        return min([self._headroom[one] - amount for one, amount in carrying])

    def _transfer_cost(self, pool: int) -> float:
        site = self._snapshot.plant.pools[pool][0]
        if self._near is None or site == self._near:
            return 0.0
        return transfer_score(self._policy.weights, transfer_usd(self._snapshot, self._near, site))

    def _is_affordable(self, nodes: Nodes) -> bool:
        """Whether its team can pay for it there, where all else is known to carry it."""
        place = self.place(nodes)
        verdicts = judge_budget(self._snapshot, self._request, place, self._power_fraction, self._policy)
        against = [verdict for verdict in verdicts if not verdict.allows]
        if against:
            self._note_against(nodes, against)
        return not against

    def _look_closer(self, nodes: Nodes, cost: float, leftover: int, claim: Claim | None = None) -> bool:
        """Heat that may come later is judged in full."""
        verdicts = self.judge(self.place(nodes), claim)
        against = [verdict for verdict in verdicts if not verdict.allows]
        if against:
            self._note_against(nodes, against)
            return False
        warmth, least_watts = 0.0, math.inf
        for verdict in verdicts:
            predicted = verdict.numbers.get("predicted_celsius")
            if predicted is not None:
                warmth = max(warmth, predicted / verdict.numbers["limit_celsius"])
            least_watts = min(least_watts, verdict.numbers.get("left_watts", math.inf))
        self._note_best(nodes, cost, warmth, least_watts, leftover)
        return True

    def _warmth(self, claim: Claim) -> float | None:
        """How near its limit the hottest node would end; None where it may not stay below."""
        spots, amounts, coolness = self._snapshot.plant.spots, dict(claim.amounts), self._coolness
        gpu_watts, warmth = claim.gpu_watts, 0.0
        for node, _ in claim.nodes:
            share = coolness.share(node, gpu_watts, amounts.get(spots[node].loop_resource, 0))
            if share is None:
                return None
            if share > warmth:
                warmth = share
        return warmth

    def _note_best(self, nodes: Nodes, cost: float, warmth: float, least_watts: float, leftover: int) -> bool:
        weights = self._policy.weights
        switches = self._switches(nodes) if weights.topology and len(nodes) > 1 else 1
        score = place_score(weights, cost, warmth, least_watts, leftover, switches)
        if score < self.best_score:
            self.best, self.best_place, self.best_score = nodes, None, score
            return True
        return False

    def _switches(self, nodes: Nodes) -> int:
        spots = self._snapshot.plant.spots
        return len({spots[node].rack.switch for node, _ in nodes})

    def _note_against(self, nodes: Nodes, against: list[Verdict]) -> None:
        """Where a place would carry the job and its team cannot pay, no other place is what it waits for."""
        missing = distance(against)
        is_about_place = any(verdict.rule not in BUDGETS for verdict in against)
        self._note_closest(nodes, missing if is_about_place else -1.0 / (1.0 + missing))

    def _note_closest(self, nodes: Nodes, missing: float) -> None:
        if missing < self._closest_distance:
            self.closest, self._closest_distance = nodes, missing
