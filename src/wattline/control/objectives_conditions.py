"""Under which conditions did something begin? What `while` of an SLO may speak of, at a time.

Headroom is what is left of a cap by what is drawn or promised, whichever is more, as a share: of a site's
feeds for power, of its loops for cooling, of its links for the network. Before a job has a place, the site
counts that has the most power left of all where its data may go: there it could start. A site is looked at
once for each step of the loop, and only where an SLO with `while` begins to count something.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from wattline.state import JobRequest, Plant, State


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """The numbers of what a site has."""

    feeds: tuple[int, ...]
    loops: tuple[int, ...]
    links: tuple[int, ...]
    pools: tuple[int, ...]
    gpus: int


class Around:
    """Conditions at each site at one moment of a state."""

    __slots__ = ("_known", "_state")

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[str, dict[str, float]] = {}

    def values(self, request: JobRequest, site: str | None) -> dict[str, float]:
        """At the site where a job is; at the roomiest that may take it, where it is nowhere yet."""
        if site is not None:
            return self._at(site)
        sites = self._state.plant.sites.values()
        allowed = [each.name for each in sites if not request.residency or each.region in request.residency]
        there = [self._at(name) for name in allowed or [each.name for each in sites]]
        return max(there, key=lambda values: values["power_headroom"])

    def _at(self, site: str) -> dict[str, float]:
        known = self._known.get(site)
        if known is None:
            columns, ledger = _columns(self._state.plant)[site], self._state.ledger
            known = self._known[site] = {
                "power_headroom": self._left(columns.feeds),
                "cooling_headroom": self._left(columns.loops),
                "link_headroom": self._left(columns.links),
                "gpus_free": sum([ledger.free_in_pool[pool] for pool in columns.pools])
                / max(1, columns.gpus),
            }
        return known

    def _left(self, resources: tuple[int, ...]) -> float:
        ledger = self._state.ledger
        caps = sum([ledger.caps[resource] for resource in resources])
        if not caps:
            return 1.0 if not resources else 0.0
        return 1.0 - sum([max(ledger.promised[each], ledger.drawn[each]) for each in resources]) / caps


@lru_cache(maxsize=8)
def _columns(plant: Plant) -> dict[str, _Columns]:
    return {
        site.name: _Columns(
            feeds=tuple(
                [plant.resource_number[supply.name] for supply in site.supplies if supply.parent is None]
            ),
            loops=tuple([plant.resource_number[loop.name] for loop in site.loops]),
            links=tuple([link for link, ends in plant.sites_of_link.items() if number in ends]),
            pools=tuple(plant.pools_of_site[number]),
            gpus=sum(node.gpus for rack in site.racks for node in rack.nodes),
        )
        for number, site in enumerate(plant.facility.sites)
    }
