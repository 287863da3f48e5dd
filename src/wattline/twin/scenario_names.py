"""Names: does a facility have everything that a scenario speaks of?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from wattline.facility import Facility
from wattline.spec.flaws import KEY, Flaw
from wattline.spec.nearest import listed, nearest
from wattline.spec.reader import Written
from wattline.spec.scenario import Scenario
from wattline.telemetry.naming import find_subjects


def check_names(written: Written[Scenario], facility: Facility) -> None:
    """Raise DocumentError with every name that this facility does not have, or has more than once."""
    flaws = [*_flaws(written.document, facility)]
    if flaws:
        raise written.wrong(flaws)


def _flaws(scenario: Scenario, facility: Facility) -> Iterator[Flaw]:
    known = _names(facility)
    for number, fault in enumerate(scenario.faults):
        kind = next(kind for kind in known if getattr(fault, kind) is not None)
        found = find_subjects(fault.subject, known[kind])
        if len(found) != 1:
            yield _unknown(("faults", number, kind), kind, fault.subject, known[kind], found, facility.name)
    sites = [site.name for site in facility.sites]
    for number, condition in enumerate(scenario.conditions):
        if condition.site is not None and condition.site not in sites:
            yield _unknown(("conditions", number, "site"), "site", condition.site, sites, [], facility.name)

    clouds = [site.name for site in facility.sites if site.cloud is not None]
    for name in scenario.spot:
        if name not in clouds:
            yield _unknown(("spot", name, KEY), "cloud", name, clouds, [], facility.name)


def _names(facility: Facility) -> Mapping[str, list[str]]:
    return {
        "loop": [loop.name for site in facility.sites for loop in site.loops],
        "supply": [supply.name for site in facility.sites for supply in site.supplies],
        "rack": [rack.name for site in facility.sites for rack in site.racks],
        "link": [link.name for link in facility.links],
    }


def _unknown(
    at: tuple[str | int, ...],
    kind: str,
    name: str,
    known: Collection[str],
    found: Collection[str],
    facility: str,
) -> Flaw:
    if found:
        message, allowed = f"facility {facility} has more than one {kind} of this name", listed(found)
        return Flaw(at=at, message=message, value=repr(name), allowed=allowed)
    bare = {one.split("/", 1)[-1]: one for one in known}
    close = nearest(name, known) or bare.get(nearest(name, bare) or "")
    return Flaw(
        at=at,
        message=f"facility {facility} has no {kind} of this name",
        value=repr(name),
        allowed=listed(known) if known else f"none: it has no {kind}",
        nearest=close,
    )
