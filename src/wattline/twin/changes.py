"""What would a facility be if something in it were otherwise? A change in, another facility out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import TypeVar

from pydantic import ValidationError

from wattline.facility import Facility, Loop, Rack, Site, Storage, Supply
from wattline.spec.facility import FacilityDocument
from wattline.spec.facility_checks import MOST_NODES
from wattline.spec.facility_write import write_facility
from wattline.spec.flaws import Flaw, FlawedError
from wattline.spec.nearest import listed, nearest
from wattline.spec.plan import GROWING, PlanChange
from wattline.spec.tree import field_name, printable
from wattline.telemetry.naming import find_subjects
from wattline.units import format_watts

_GROW = f"grow: [{', '.join(GROWING)}], which builds out what the copies hang on"

Named = TypeVar("Named", Rack, Loop, Supply)


def apply_change(facility: Facility, change: PlanChange) -> Facility:
    """The same facility with this one change."""
    return apply_changes(facility, [change])


def apply_changes(facility: Facility, changes: Sequence[PlanChange]) -> Facility:
    """The same facility with all of these, one after the other.

    Raises FlawedError where one names nothing that is there, or where what comes out in the end would not
    pass as a facility document; paths begin at `changes`.
    """
    for number, change in enumerate(changes):
        try:
            facility = _apply(facility, change)
        except FlawedError as error:
            at = ("changes", number)
            raise FlawedError([replace(flaw, at=(*at, *flaw.at)) for flaw in error.flaws]) from None
    _check(facility, changes)
    return facility


def describe_change(change: PlanChange) -> str:
    """A change as one would say it."""
    if change.copies is not None:
        where = f" on {change.on_loop}" if change.on_loop else ""
        grown = " and ".join({"loop": "its loop", "power": "its supplies"}[part] for part in change.grow)
        racks = "rack" if change.copies == 1 else "racks"
        return f"{change.copies} more {racks} like {change.rack}{where}, {grown or 'nothing else'} built out"
    if change.warmer_by is not None:
        direction = "warmer" if change.warmer_by >= 0 else "colder"
        return f"{change.loop}: supply {abs(change.warmer_by):g} K {direction}"
    factors = {
        f"{change.loop}: capacity": change.capacity_factor,
        f"{change.supply}: rating": change.rating_factor,
        f"{change.rack}: cap": change.cap_factor,
        f"{change.link}: bandwidth": change.bandwidth_factor,
    }
    return " and ".join(f"{what} × {factor:g}" for what, factor in factors.items() if factor is not None)


def say_crowding(facility: Facility, changes: Sequence[PlanChange]) -> str:
    """What copies draw before work comes, out of what carries no more than before; empty where all grows."""
    racks = {rack.name: rack for site in facility.sites for rack in site.racks}
    alone = [change for change in changes if change.copies and len(change.grow) < len(GROWING)]
    watts = 0.0
    for change in alone:
        original = racks[find_subjects(change.rack or "", racks)[0]]
        watts += (change.copies or 0) * sum(node.idle_watts for node in original.nodes)
    if not watts:
        return ""
    words = {"loop": "loop", "power": "supplies"}
    fixed = " and ".join(words[part] for part in GROWING if any(part not in change.grow for change in alone))
    return (
        f"idle, the new racks take {format_watts(watts)} of what {fixed} carry for work; grow builds that out"
    )


def sites_recooled(before: Facility, after: Facility) -> list[str]:
    """Sites whose loops are no longer what they were: their PUE would not stay either."""
    pairs = zip(before.sites, after.sites, strict=True)
    return [site.name for site, changed in pairs if site.loops != changed.loops]


def _apply(facility: Facility, change: PlanChange) -> Facility:
    if change.link is not None:
        return _change_link(facility, change.link, change.bandwidth_factor or 1.0)
    if change.rack is not None and change.copies is not None:
        return _add_racks(facility, change.rack, change.copies, change)
    if change.rack is not None:
        return _change_cap(facility, change.rack, change.cap_factor or 1.0)
    if change.loop is not None:
        return _change_loop(facility, change.loop, change)
    return _change_supply(facility, change.supply or "", change.rating_factor or 1.0)


def _change_link(facility: Facility, name: str, factor: float) -> Facility:
    known = [link.name for link in facility.links]
    if name not in known:
        raise _unknown("link", f"link in {facility.name}", name, known)
    links = (
        replace(link, bits_per_second=factor * link.bits_per_second) if link.name == name else link
        for link in facility.links
    )
    return replace(facility, links=tuple(links))


def _change_cap(facility: Facility, name: str, factor: float) -> Facility:
    site, rack = _find(facility, "rack", name, [(site, site.racks) for site in facility.sites])
    changed = replace(rack, cap_watts=factor * rack.cap_watts)
    return _with_site(facility, replace(site, racks=_put(site.racks, changed)))


def _change_loop(facility: Facility, name: str, change: PlanChange) -> Facility:
    site, loop = _find(facility, "loop", name, [(site, site.loops) for site in facility.sites])
    if change.warmer_by is not None:
        changed = replace(loop, supply_celsius=loop.supply_celsius + change.warmer_by)
    else:
        changed = _larger(loop, (change.capacity_factor or 1.0) * loop.capacity_watts)
    return _with_site(facility, replace(site, loops=_put(site.loops, changed)))


def _larger(loop: Loop, capacity_watts: float) -> Loop:
    """More of the same: flow goes with capacity, so that coolant warms up as much as it did."""
    flow = loop.flow_litres_per_minute
    return replace(
        loop,
        capacity_watts=capacity_watts,
        flow_litres_per_minute=None if flow is None else flow * capacity_watts / loop.capacity_watts,
    )


def _change_supply(facility: Facility, name: str, factor: float) -> Facility:
    site, supply = _find(facility, "supply", name, [(site, site.supplies) for site in facility.sites])
    changed = replace(supply, rating_watts=factor * supply.rating_watts)
    return _with_site(facility, replace(site, supplies=_put(site.supplies, changed)))


def _add_racks(facility: Facility, name: str, copies: int, change: PlanChange) -> Facility:
    """Copies stand in the row and under the switch of the original, on its supplies."""
    site, original = _find(facility, "rack", name, [(site, site.racks) for site in facility.sites])
    _, loop = _find(facility, "on_loop", change.on_loop or original.loop, [(site, site.loops)])
    nodes = sum(len(rack.nodes) for one in facility.sites for rack in one.racks)
    if (nodes := nodes + copies * len(original.nodes)) > MOST_NODES:
        raise _flawed("copies", "too many nodes", value=f"{nodes:,}", allowed=f"at most {MOST_NODES:,}")
    racks = (*site.racks, *(_copy(original, name, loop) for name in _free_names(site, original, copies)))
    loops, supplies = site.loops, site.supplies
    if "loop" in change.grow:
        loops = _put(loops, _larger(loop, loop.capacity_watts + copies * original.cap_watts))
    if "power" in change.grow:
        supplies = _grown(supplies, original, copies)
    return _with_site(facility, replace(site, racks=racks, loops=loops, supplies=supplies))


def _free_names(site: Site, original: Rack, copies: int) -> Iterator[str]:
    things: tuple[Rack | Loop | Supply | Storage, ...] = (
        *site.racks,
        *site.loops,
        *site.supplies,
        site.storage,
    )
    taken = {thing.name for thing in things}
    names = (f"{original.name}-copy{number}" for number in count(1))
    return islice((name for name in names if name not in taken), copies)


def _copy(original: Rack, name: str, loop: Loop) -> Rack:
    nodes = (
        replace(node, name=f"{name}-n{number}", rack=name)
        for number, node in enumerate(original.nodes, start=1)
    )
    switch = name if original.switch == original.name else original.switch
    return replace(original, name=name, loop=loop.name, switch=switch, nodes=tuple(nodes))


def _grown(supplies: Sequence[Supply], original: Rack, copies: int) -> tuple[Supply, ...]:
    """Each supply above the copies carries their caps too, for hours: all of them where it must alone."""
    alone = original.redundant or len(original.supplies) == 1
    more_watts = copies * original.cap_watts / (1 if alone else len(original.supplies))
    extra_watts: dict[str, float] = {}
    for supply in supplies:
        if supply.name in original.supplies:
            for name in filter(None, (supply.name, supply.parent)):
                extra_watts[name] = extra_watts.get(name, 0.0) + more_watts
    return tuple(
        replace(
            supply,
            rating_watts=supply.rating_watts + extra_watts.get(supply.name, 0.0) / supply.continuous_fraction,
        )
        for supply in supplies
    )


def _find(
    facility: Facility, field: str, name: str, by_site: Sequence[tuple[Site, Sequence[Named]]]
) -> tuple[Site, Named]:
    """What a name means: `site/name`, or `name` where only one thing has it."""
    known = {each.name: (site, each) for site, things in by_site for each in things}
    found = find_subjects(name, known)
    if len(found) == 1:
        return known[found[0]]
    what = {"supply": "feed or pdu", "on_loop": "loop"}.get(field, field)
    if found:
        raise _flawed(field, f"more than one {what} has this name", value=repr(name), allowed=listed(found))
    raise _unknown(field, f"{what} in {facility.name}", name, known)


def _put(things: Sequence[Named], changed: Named) -> tuple[Named, ...]:
    return tuple(changed if each.name == changed.name else each for each in things)


def _with_site(facility: Facility, changed: Site) -> Facility:
    sites = (changed if site.name == changed.name else site for site in facility.sites)
    return replace(facility, sites=tuple(sites))


def _check(facility: Facility, changes: Sequence[PlanChange]) -> None:
    """Written out, it must pass as a document does: what is always drawn fits, and no figure is absurd."""
    try:
        FacilityDocument.model_validate(write_facility(facility))
    except ValidationError as error:
        alone = any(change.copies and len(change.grow) < len(GROWING) for change in changes)
        raise FlawedError(list(_flaws(error, _GROW if alone else None))) from None


def _flaws(error: ValidationError, instead: str | None) -> Iterator[Flaw]:
    for found in error.errors(include_url=False):
        cause = found.get("ctx", {}).get("error")
        if isinstance(cause, FlawedError):
            for flaw in cause.flaws:
                message = f"{_subject(flaw.at)} would not do: {flaw.message}"
                yield replace(flaw, at=("changes",), message=message, allowed=flaw.allowed or instead)
        else:
            message = f"{_subject(found['loc'])} would not do: {found['msg']}"
            yield Flaw(at=("changes",), message=message, value=printable(str(found["input"])))


def _subject(at: Sequence[str | int]) -> str:
    """`sites.lulea.loops.cdu-1.capacity` is `lulea/cdu-1` to people."""
    return f"{at[1]}/{at[3]}" if len(at) > 3 else field_name(tuple(at))


def _unknown(field: str, what: str, name: str, known: Collection[str]) -> FlawedError:
    message, close = f"there is no {what} of this name", nearest(name, known)
    return _flawed(field, message, value=repr(name), allowed=listed(known, most=12), nearest=close)


def _flawed(field: str, message: str, *, value: str, allowed: str, nearest: str | None = None) -> FlawedError:
    return FlawedError([Flaw(at=(field,), message=message, value=value, allowed=allowed, nearest=nearest)])
