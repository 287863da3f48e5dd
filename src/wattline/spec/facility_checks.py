"""Does a facility hold together? Every name leads somewhere, and what is always drawn fits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from wattline.facility import Device, TrafficClass
from wattline.spec.cloud import CloudSiteDocument
from wattline.spec.flaws import KEY, Flaw
from wattline.spec.nearest import listed, nearest
from wattline.spec.ranges import names_in
from wattline.spec.site import LinkDocument, RackDocument, SiteDocument
from wattline.units import format_watts

MOST_NODES = 200_000

Path = tuple[str | int, ...]


def flaws_of(
    sites: Mapping[str, SiteDocument],
    links: Sequence[LinkDocument],
    devices: Mapping[str, Device],
    linked: Collection[str],
) -> Iterator[Flaw]:
    """Everything wrong between the parts of a facility; `devices` are the GPUs it may name, `linked` all
    sites that links may join."""
    nodes = sum(
        len(names_in(written)) * sum(group.count for group in rack.nodes)
        for site in sites.values()
        for written, rack in site.racks.items()
    )
    if nodes > MOST_NODES:
        yield Flaw(
            at=("sites",), message="too many nodes", value=f"{nodes:,}", allowed=f"at most {MOST_NODES:,}"
        )
        return
    for name, site in sites.items():
        at = ("sites", name)
        yield from _repeated_names(site, at)
        yield from _dangling_names(site, at, devices)
        yield from _unmetered_names(site, at)
        yield from _repeated_hosts(site, at)
    yield from _wrong_links(links, linked)


def cloud_flaws_of(
    clouds: Mapping[str, CloudSiteDocument], links: Sequence[LinkDocument], devices: Mapping[str, Device]
) -> Iterator[Flaw]:
    """What is wrong with regions of clouds, and with the links that lead to them."""
    for name, site in clouds.items():
        gpu = site.cloud.instance.gpu
        if gpu not in devices:
            yield _unknown(("sites", name, "cloud", "instance", "gpu"), "GPU", gpu, devices)
        if not any(name in link.between for link in links):
            message = "no link leads to this region: checkpoints and results could not come back"
            yield Flaw(at=("sites", name, "cloud"), message=message, allowed="one link at least, under links")
    for position, link in enumerate(links):
        paid = [name for name in link.between if name in clouds and clouds[name].cloud.egress]
        if link.egress and paid:
            message = f"{paid[0]} says what leaving it costs already; say egress once"
            yield Flaw(at=("links", position, "egress"), message=message, value=f"{link.egress:g}")


def overloads_of(sites: Mapping[str, SiteDocument], devices: Mapping[str, Device]) -> Iterator[Flaw]:
    """What cannot carry even the idle draw of what hangs on it; asked once every name leads somewhere."""
    for name, site in sites.items():
        yield from _overloads(site, ("sites", name), devices)


def _unknown(at: Path, what: str, name: str, known: Collection[str]) -> Flaw:
    return Flaw(
        at=at,
        message=f"there is no {what} of this name",
        value=repr(name),
        allowed=listed(known),
        nearest=nearest(name, known),
    )


def _repeated_hosts(site: SiteDocument, at: Path) -> Iterator[Flaw]:
    """A host is one machine: a range of racks cannot share the hosts that are written once."""
    seen: set[str] = set()
    for written, rack in site.racks.items():
        for position, group in enumerate(rack.nodes):
            hosts = [host for _ in names_in(written) for each in group.hosts for host in names_in(each)]
            twice = next((host for host in hosts if host in seen or hosts.count(host) > 1), None)
            seen.update(hosts)
            if twice is not None:
                message = "a host stands for one node; write racks one by one where they name hosts"
                yield Flaw(
                    at=(*at, "racks", written, "nodes", position, "hosts"), message=message, value=twice
                )


def _repeated_names(site: SiteDocument, at: Path) -> Iterator[Flaw]:
    """Within a site one name is one thing, whatever its kind: faults, readings and reasons go by it."""
    taken = dict.fromkeys(site.feeds, "a feed")
    for part, what in (("pdus", "a pdu"), ("loops", "a loop"), ("racks", "a rack")):
        for written in getattr(site, part):
            for name in names_in(written):
                if name in taken:
                    message = f"{taken[name]} of this site has this name already"
                    yield Flaw(at=(*at, part, written, KEY), message=message, value=repr(name))
                    break
                taken[name] = what
    if site.storage.name in taken:
        message = f"{taken[site.storage.name]} of this site has this name already"
        yield Flaw(at=(*at, "storage", "name"), message=message, value=repr(site.storage.name))


def _dangling_names(site: SiteDocument, at: Path, devices: Mapping[str, Device]) -> Iterator[Flaw]:
    for model in site.gpu_hour:
        if model not in devices:
            yield _unknown((*at, "gpu_hour", model, KEY), "GPU", model, devices)
    for name, pdu in site.pdus.items():
        if pdu.feed not in site.feeds:
            yield _unknown((*at, "pdus", name, "feed"), "feed", pdu.feed, site.feeds)
    supplies = (*site.feeds, *site.pdus)
    for written, rack in site.racks.items():
        rack_at = (*at, "racks", written)
        for position, supply in enumerate(rack.power):
            if supply not in supplies:
                yield _unknown((*rack_at, "power", position), "feed or pdu", supply, supplies)
        yield from _wrong_pair(rack, rack_at)
        if rack.loop not in site.loops:
            yield _unknown((*rack_at, "loop"), "loop", rack.loop, site.loops)
        for position, group in enumerate(rack.nodes):
            if group.gpu is not None and group.gpu not in devices:
                yield _unknown((*rack_at, "nodes", position, "gpu"), "GPU", group.gpu, devices)


def _unmetered_names(site: SiteDocument, at: Path) -> Iterator[Flaw]:
    """Meters and limits of things that are not there."""
    nodes = {
        f"{rack}-n{number}"
        for written, document in site.racks.items()
        for rack in names_in(written)
        for number in range(1, sum(group.count for group in document.nodes) + 1)
    }
    racks = {rack for written in site.racks for rack in names_in(written)}
    known = {*nodes, *racks, *site.feeds, *site.pdus, *site.loops}
    for position, source in enumerate(site.telemetry):
        for part in ("targets", "names"):
            written_names = getattr(source, part)
            for key, value in written_names.items():
                written = key if part == "targets" else value
                unknown = next((name for name in names_in(written) if name not in known), None)
                if unknown is not None:
                    where = (*at, "telemetry", position, part, key)
                    yield _unknown(where, "node, rack, supply or loop", unknown, sorted(known))
    for written in site.power_caps.targets if site.power_caps is not None else ():
        unknown = next((name for name in names_in(written) if name not in nodes), None)
        if unknown is not None:
            yield _unknown((*at, "power_caps", "targets", written), "node", unknown, sorted(nodes))


def _wrong_pair(rack: RackDocument, at: Path) -> Iterator[Flaw]:
    if len(set(rack.power)) != len(rack.power):
        yield Flaw(
            at=(*at, "power"), message="both supplies of this rack are the same", value=repr(rack.power[0])
        )
    if rack.redundant and len(rack.power) == 1:
        yield Flaw(at=(*at, "redundant"), message="a rack on one supply is not redundant; name two, A and B")


def _overloads(site: SiteDocument, at: Path, devices: Mapping[str, Device]) -> Iterator[Flaw]:
    on_supply: defaultdict[str, float] = defaultdict(float)
    on_loop: defaultdict[str, float] = defaultdict(float)
    for written, rack in site.racks.items():
        idle = _idle_watts(rack, devices)
        if idle > rack.cap:
            yield _overloaded((*at, "racks", written, "cap"), "its idle nodes draw", idle, rack.cap)
        total = idle * len(names_in(written))
        alone = len(rack.power) == 1 or rack.redundant is not False
        for supply in rack.power:
            on_supply[supply] += total if alone else total / len(rack.power)
        on_loop[rack.loop] += total
    for name, pdu in site.pdus.items():
        on_supply[pdu.feed] += on_supply[name]
        usable = pdu.rating * pdu.continuous
        if on_supply[name] > usable:
            yield _overloaded((*at, "pdus", name, "rating"), "its idle racks draw", on_supply[name], usable)
    for name, feed in site.feeds.items():
        usable = feed.rating * feed.continuous
        if on_supply[name] > usable:
            yield _overloaded((*at, "feeds", name, "rating"), "its idle racks draw", on_supply[name], usable)
    for name, loop in site.loops.items():
        if on_loop[name] > loop.capacity:
            yield _overloaded(
                (*at, "loops", name, "capacity"), "its idle racks give off", on_loop[name], loop.capacity
            )


def _overloaded(at: Path, why: str, watts: float, most: float) -> Flaw:
    return Flaw(
        at=at, message=f"{why} {format_watts(watts)}, more than the {format_watts(most)} it can carry"
    )


def _idle_watts(rack: RackDocument, devices: Mapping[str, Device]) -> float:
    return sum(
        group.count * (group.other + (group.gpus * devices[group.gpu].idle_watts if group.gpu else 0.0))
        for group in rack.nodes
    )


def _wrong_links(links: Sequence[LinkDocument], sites: Collection[str]) -> Iterator[Flaw]:
    names: set[str] = set()
    pairs: dict[frozenset[str], str] = {}
    for position, link in enumerate(links):
        at: Path = ("links", position)
        if link.name in names:
            yield Flaw(at=(*at, "name"), message="two links have this name", value=repr(link.name))
        names.add(link.name)
        for end, site in enumerate(link.between):
            if site not in sites:
                yield _unknown((*at, "between", end), "site", site, sites)
        pair = frozenset(link.between)
        if len(pair) == 1:
            yield Flaw(at=(*at, "between"), message="a link joins two different sites")
        elif pair in pairs:
            message = f"{pairs[pair]} joins these sites already; write both as one link with their sum"
            yield Flaw(at=(*at, "between"), message=message)
        pairs.setdefault(pair, link.name)
        yield from _wrong_shares(link, at)


def _wrong_shares(link: LinkDocument, at: Path) -> Iterator[Flaw]:
    total = sum(link.shares.values())
    silent = [traffic.value for traffic in TrafficClass if traffic not in link.shares]
    if total > 1 + 1e-9:
        yield Flaw(
            at=(*at, "shares"), message="the shares of a link add up to 100% at most", value=f"{total:.4g}"
        )
    elif silent and link.shares and total > 1 - 1e-9:
        yield Flaw(at=(*at, "shares"), message=f"these shares leave nothing for {', '.join(silent)}")
