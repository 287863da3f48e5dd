"""Carrying: which part of a rack's watts does each of its supplies carry now?

A claim on a pair counts in full on A and on B, because either must be able to carry it alone. What a job
draws is on both in halves while both are there.
"""

from __future__ import annotations

from collections.abc import Mapping

from wattline.state import ResourceKind, Snapshot


def part_carried(snapshot: Snapshot, node: int, resource: int) -> float:
    """Of what a node's claims count on a resource above it, the part that it carries now."""
    rack = snapshot.plant.spots[node].rack
    if not rack.redundant or snapshot.plant.kinds[resource] is not ResourceKind.SUPPLY:
        return 1.0
    parents = {supply.name: supply.parent for supply in snapshot.plant.spots[node].site.supplies}
    return 1.0 / max(1, sum(_is_live(snapshot, name, parents) for name in rack.supplies))


def _is_live(snapshot: Snapshot, supply: str, parents: Mapping[str, str | None]) -> bool:
    """A PDU has nothing to give where its feed has not."""
    above: str | None = supply
    while above is not None:
        if snapshot.cap(snapshot.plant.resource_number[above]) <= 0:
            return False
        above = parents[above]
    return True
