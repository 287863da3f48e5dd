"""Renting: what do clouds tell, and which of their machines are taken back when?

Each machine that somebody uses has a lot of its own: how long until it is taken back, by how many GPUs it
has, and then until it is given back. Nobody pays for a machine that nobody uses, and nobody takes it back.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from random import Random

from wattline.state import Event, Measured, NodeGivenBack, NodeReclaimed, Plant
from wattline.state.market import GPU_HOUR_PRICE
from wattline.twin.spot_prices import Prices, prices_of
from wattline.twin.surroundings.series import Constant
from wattline.units import SECONDS_PER_HOUR

_TAKEN, _GONE, _BACK = "taken", "gone", "back"


class Renting:
    """The clouds of a plant, on the twin's clock."""

    def __init__(
        self, plant: Plant, seed: int, begins_at: float, read: Mapping[str, Prices] | None = None
    ) -> None:
        self._plant, self._seed = plant, seed
        self._prices = {
            site: prices_of(site, cloud, seed, begins_at, read or {}) for site, cloud in plant.clouds.items()
        }
        self._told: dict[str, float] = {}
        # Where no price ever changes, none is told after the first.
        changes = any(not isinstance(one, Constant) for one in self._prices.values())
        self._price_at, self._changes = begins_at, changes
        self._used: dict[int, int] = {}  # machine → how many jobs are on it
        self._rentals: dict[int, int] = {}  # … and how often it was rented or given back so far
        self._agenda: list[tuple[float, int, str]] = []
        self._out: set[int] = set()
        self.reclaims = 0

    def rent(self, nodes: Iterable[tuple[int, int]], at: float) -> None:
        """A job begins on these nodes."""
        for node, _ in nodes:
            cloud = self._plant.spots[node].site.cloud
            if cloud is None:
                return  # a job never spans sites
            self._used[node] = self._used.get(node, 0) + 1
            rate = cloud.reclaims_per_gpu_hour * self._plant.spots[node].node.gpus / SECONDS_PER_HOUR
            if self._used[node] == 1 and rate > 0.0 and node not in self._out:
                heapq.heappush(self._agenda, (at + self._draw(node).expovariate(rate), node, _TAKEN))

    def leave(self, nodes: Iterable[tuple[int, int]]) -> None:
        for node, _ in nodes:
            if self._used.get(node):
                self._used[node] -= 1
                if not self._used[node]:  # the next who comes has another lot
                    self._agenda = [entry for entry in self._agenda if entry[1:] != (node, _TAKEN)]
                    heapq.heapify(self._agenda)

    def usd(self, site: str, gpus: int, start: float, end: float) -> float:
        return gpus * self._prices[site].integral(start, end)

    @property
    def will_recover(self) -> bool:
        return bool(self._out)

    def next_at(self) -> float:
        return min(self._price_at, self._agenda[0][0] if self._agenda else math.inf)

    def happen(self, at: float) -> tuple[list[Event], set[int]]:
        """What the clouds tell by now, and the machines that are gone from now on."""
        told: list[Event] = []
        gone: set[int] = set()
        if self._price_at <= at:
            self._tell_prices(at, told)
        while self._agenda and self._agenda[0][0] <= at:
            _, node, what = heapq.heappop(self._agenda)
            name, cloud = self._plant.spots[node].node.name, self._plant.spots[node].site.cloud
            assert cloud is not None
            if what == _TAKEN:
                self.reclaims += 1
                self._out.add(node)
                notice = cloud.notice_seconds
                told.append(NodeReclaimed(at=at, source="twin", node=name, notice_seconds=notice))
                heapq.heappush(self._agenda, (at + notice, node, _GONE))
            elif what == _GONE:
                gone.add(node)
                back_at = at + self._draw(node).expovariate(1.0 / cloud.back_seconds)
                heapq.heappush(self._agenda, (back_at, node, _BACK))
            else:
                self._out.discard(node)
                told.append(NodeGivenBack(at=at, source="twin", node=name))
        return told, gone

    def _tell_prices(self, at: float, told: list[Event]) -> None:
        hour_at = math.floor(at / SECONDS_PER_HOUR) * SECONDS_PER_HOUR
        self._price_at = hour_at + SECONDS_PER_HOUR if self._changes else math.inf
        prices = {site: round(prices.at(at), 6) for site, prices in self._prices.items()}
        news = {site: price for site, price in prices.items() if self._told.get(site) != price}
        self._told.update(news)
        if news:
            readings = tuple((site, GPU_HOUR_PRICE, price) for site, price in news.items())
            told.append(Measured(at=at, source="twin", readings=readings))

    def _draw(self, node: int) -> Random:
        """A lot of its own for each time, whatever happens to other machines."""
        times = self._rentals[node] = self._rentals.get(node, 0) + 1
        return Random(f"reclaim/{self._seed}/{self._plant.spots[node].node.name}/{times}")  # noqa: S311
