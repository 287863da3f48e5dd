"""Power: who carries a rack now, and what goes dark when a breaker trips or a feed is lost?"""

from __future__ import annotations

from wattline.twin.truth.breaker import RESET_SECONDS, Breaker
from wattline.twin.truth.floor import Floor
from wattline.twin.truth.incident import IncidentKind
from wattline.twin.truth.node import TrueRack


def trip(floor: Floor, breaker: Breaker, at: float) -> None:
    """It opens; what hung on it moves to the other side or goes dark."""
    breaker.switch(tripped=True)
    breaker.look(at)
    floor.trips += 1
    floor.agenda.set(breaker.reset_slot, at + RESET_SECONDS)
    floor.tell(IncidentKind.TRIPPED, at, breaker.name, [], [])
    rewire(floor, breaker, at)


def reset(floor: Floor, breaker: Breaker, at: float) -> None:
    breaker.switch(tripped=False)
    floor.tell(IncidentKind.RESET, at, breaker.name, [], [])
    rewire(floor, breaker, at)


def derate(floor: Floor, breaker: Breaker, left: float, at: float) -> None:
    """A fault took part of what it may carry, or gave it back."""
    if breaker.left != left:
        breaker.derate(left)
        breaker.look(at)
        rewire(floor, breaker, at)


def rewire(floor: Floor, breaker: Breaker, at: float) -> None:
    """Find anew who carries each rack under a supply, or the rack that the breaker belongs to."""
    floor.touched_resources[breaker.number] = None
    for rack in floor.racks.values():
        if rack.breaker is breaker or _hangs_on(rack, breaker):
            _feed(floor, rack, at)


def find_carriers(rack: TrueRack) -> tuple[tuple[Breaker, float], ...]:
    """A and B carry alike while both are there, and all of it alone where they are built for that."""
    live = [supply for supply in rack.supplies if supply.is_live]
    missing = len(live) < len(rack.supplies)
    if not rack.breaker.is_live or (missing and not rack.rack.redundant):
        return ()
    shares: dict[Breaker, float] = {}
    for supply in live:
        above: Breaker | None = supply
        while above is not None:
            shares[above] = shares.get(above, 0.0) + 1.0 / len(live)
            above = above.parent
    return tuple(shares.items())


def _hangs_on(rack: TrueRack, breaker: Breaker) -> bool:
    for supply in rack.supplies:
        above: Breaker | None = supply
        while above is not None:
            if above is breaker:
                return True
            above = above.parent
    return False


def _feed(floor: Floor, rack: TrueRack, at: float) -> None:
    carriers = find_carriers(rack)
    if carriers == rack.carriers:
        return
    if not carriers:
        _darken(floor, rack, at)
    before = rack.carriers
    rack.hang_on(carriers)
    for breaker, share in before:
        breaker.watts -= rack.breaker.watts * share
    for breaker, share in carriers:
        breaker.watts += rack.breaker.watts * share
    for breaker in dict(before) | dict(carriers):
        breaker.look(at)
        floor.touched_resources[breaker.number] = None
    if not before:
        _light(floor, rack, at)


def _darken(floor: Floor, rack: TrueRack, at: float) -> None:
    keys: list[str] = []
    went_off = [node for node in rack.nodes if not node.is_off]
    for node in rack.nodes:
        keys += floor.lose(node, at)
        node.unpowered = True
        floor.refresh(node, at)
    floor.tell(IncidentKind.OFF, at, rack.rack.name, keys, went_off)


def _light(floor: Floor, rack: TrueRack, at: float) -> None:
    for node in rack.nodes:
        node.unpowered = False
        floor.refresh(node, at)
    floor.tell(IncidentKind.ON, at, rack.rack.name, [], [node for node in rack.nodes if not node.is_off])
