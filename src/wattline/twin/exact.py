"""Exact: what is the best that could be done with the jobs that wait, all of them weighed together?

The same claims and the same objective (`policy/placing/objective.py`) as the search that decides, given to
HiGHS as one mixed-integer program: GPUs and CPUs of nodes, watts of racks, supplies and loops. A place
scores what it would if its job were the only one. It is a measure, not a way to decide: seconds for a dozen
jobs. Of a job over several nodes only the price counts, its watts are not rounded up and its first node's
CPUs are not counted, and heat is looked at for each job by itself: so the score is never above that of the
best placement.

Needs scipy: the extra `exact`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from wattline.errors import UnavailableError
from wattline.policy.headroom.power import headroom_of
from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.objective import waiting_score
from wattline.policy.placing.placement import score_place
from wattline.spec.policy import Policy
from wattline.state import Claim, JobRequest, Place, Snapshot, claim_of, compared_hours, peak_watts_on

_MOST_SECONDS = 20.0
_GAP = 1e-4  # relative: as near to the best as is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the jobs would go, by name, and what all of it scores at best."""

    places: dict[str, Place]
    score: float


def place_exactly(snapshot: Snapshot, policy: Policy, requests: Sequence[JobRequest]) -> Placement:
    """Place some jobs at the best total score, those that wait included."""
    program = _Program(snapshot, policy, requests)
    for number in range(len(requests)):
        program.add_job(number)
    return program.solve()


@dataclass(slots=True)
class _Program:
    """Columns are ways to place a job, or GPUs of one on a node; rows are what they share."""

    snapshot: Snapshot
    policy: Policy
    requests: Sequence[JobRequest]
    scores: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    taken: dict[tuple[str, int], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    placed: list[list[int]] = field(default_factory=list)  # by job: columns of which one is taken
    whole: dict[int, tuple[int, Place]] = field(default_factory=dict)  # column → job, place on one node
    parts: dict[int, tuple[int, int]] = field(default_factory=dict)  # column → job, node
    gangs: list[tuple[int, int, list[int]]] = field(default_factory=list)  # job, its pool's column, its parts
    waiting: float = 0.0

    def add_job(self, number: int) -> None:
        request, plant = self.requests[number], self.snapshot.plant
        waits = waiting_score(self.policy.weights, request)
        self.waiting += waits
        columns: list[int] = []
        self.placed.append(columns)
        for each, pool in pools_for(plant, self.policy, request):
            columns += self._add_nodes(number, pool, waits)
            if request.may_spread:
                columns.append(self._add_gang(number, pool, each * compared_hours(request) - waits))

    def _add_nodes(self, number: int, pool: int, waits: float) -> list[int]:
        snapshot, request, found = self.snapshot, self.requests[number], list[int]()
        for bay in snapshot.plant.bays_of_pool[pool]:
            for node in range(snapshot.plant.bays[bay].first, snapshot.plant.bays[bay].ends_before):
                if snapshot.gpus_free(node) < request.gpus or snapshot.cpus_free(node) < request.cpus:
                    continue
                spot = snapshot.plant.spots[node]
                place = Place(spot.site.name, ((spot.node.name, request.gpus),))
                scored = score_place(snapshot, self.policy, request, place)
                if scored is None:
                    continue
                column = self._add_column(scored - waits, 1.0)
                self.whole[column] = (number, place)
                self._take(column, claim_of(request, place, snapshot.plant))
                found.append(column)
        return found

    def _add_gang(self, number: int, pool: int, score: float) -> int:
        """One column for the pool, and one for its GPUs on each node."""
        snapshot, request, plant = self.snapshot, self.requests[number], self.snapshot.plant
        chosen, parts = self._add_column(score, 1.0), list[int]()
        for bay in plant.bays_of_pool[pool]:
            for node in range(plant.bays[bay].first, plant.bays[bay].ends_before):
                free = snapshot.gpus_free(node)
                if not free:
                    continue
                column = self._add_column(0.0, float(free))
                self.parts[column] = (number, node)
                parts.append(column)
                self.taken["gpus", node][column] = 1.0
                spot = plant.spots[node]
                idle_watts = spot.node.device.idle_watts if spot.node.device else 0.0
                watts = max(0.0, peak_watts_on(request, plant, node, 1, 1.0) - idle_watts)
                for resource, share in (*spot.power, (spot.loop_resource, 1.0)):
                    self.taken["amount", resource][column] = watts * share
        self.gangs.append((number, chosen, parts))
        return chosen

    def _add_column(self, score: float, most: float) -> int:
        self.scores.append(score)
        self.most.append(most)
        return len(self.scores) - 1

    def _take(self, column: int, claim: Claim) -> None:
        for node, gpus in claim.nodes:
            self.taken["gpus", node][column] = float(gpus)
        self.taken["millicpus", claim.nodes[0][0]][column] = float(claim.millicpus)
        for resource, amount in claim.amounts:
            self.taken["amount", resource][column] = float(amount)

    def solve(self) -> Placement:
        if not self.scores:
            return Placement(places={}, score=self.waiting)
        rows, least, most = self._rows()
        values, rows_at, columns_at = [], [], []
        for number, row in enumerate(rows):
            for column, value in row.items():
                values.append(value)
                rows_at.append(number)
                columns_at.append(column)
        matrix = csr_array((values, (rows_at, columns_at)), shape=(len(rows), len(self.scores)))
        found = milp(
            np.array(self.scores),
            constraints=LinearConstraint(matrix, least, most),
            bounds=Bounds(0.0, np.array(self.most)),
            integrality=np.ones(len(self.scores), dtype=np.int8),
            options={"time_limit": _MOST_SECONDS, "mip_rel_gap": _GAP},
        )
        if found.x is None:
            raise UnavailableError(f"HiGHS found no placement: {found.message}", hint="ask for fewer jobs")
        return Placement(places=self._places(found.x), score=self.waiting + found.mip_dual_bound)

    def _rows(self) -> tuple[list[dict[int, float]], list[float], list[float]]:
        headroom = headroom_of(self.snapshot, self.policy.thresholds)
        rows, least, most = [dict.fromkeys(columns, 1.0) for columns in self.placed if columns], [], []
        least += [0.0] * len(rows)
        most += [1.0] * len(rows)
        for number, chosen, parts in self.gangs:
            rows.append(dict.fromkeys(parts, 1.0) | {chosen: -float(self.requests[number].gpus)})
            least.append(0.0)
            most.append(0.0)
        for (kind, number), row in self.taken.items():
            if kind == "amount":
                limit = float(math.floor(headroom[number]))
            elif kind == "gpus":
                limit = float(self.snapshot.gpus_free(number))
            else:
                limit = 1000.0 * self.snapshot.cpus_free(number)
            rows.append(row)
            least.append(-math.inf)
            most.append(limit)
        return rows, least, most

    def _places(self, chosen: np.ndarray) -> dict[str, Place]:
        spots, places = self.snapshot.plant.spots, dict[str, Place]()
        spread: dict[int, list[tuple[str, int]]] = defaultdict(list)
        for column, (job, place) in self.whole.items():
            if chosen[column] > 0.5:
                places[self.requests[job].job] = place
        for column, (job, node) in self.parts.items():
            if chosen[column] > 0.5:
                spread[job].append((spots[node].node.name, round(chosen[column])))
        for job, nodes in spread.items():
            site = spots[self.snapshot.plant.node_number[nodes[0][0]]].site.name
            places[self.requests[job].job] = Place(site, tuple(nodes))
        return places
