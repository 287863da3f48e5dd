"""Conditions: how much room is left at a site, in kilowatts and minutes, and who would still fit?

Everything follows from a snapshot and, for what rises, from readings of some minutes before.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from wattline.policy.giving_way.pressure import judge_pressure
from wattline.policy.headroom.power import UNITS, usable
from wattline.spec.policy import Policy
from wattline.state import JobState, ResourceKind, SiteRecord, Snapshot, Standing
from wattline.state.measuring import OTHERS_GPUS
from wattline.units import format_bits_per_second, format_named, format_seconds, format_watts

# What was read of a subject, and when: of some minutes before, so that a rise can be told from noise.
Before = Mapping[str, tuple[float, float]]

_LEAST_SPAN_SECONDS = 60.0
_LONGEST_MINUTES = 24 * 60.0  # who is full only after a day is not getting full
_THINGS = {
    ResourceKind.SUPPLY: "feed",
    ResourceKind.RACK: "rack",
    ResourceKind.LOOP: "loop",
    ResourceKind.LINK: "link",
}
_STANDS = {
    Standing.LOCAL_ONLY: "its agent is not heard: nothing begins there, and nothing of it moves",
    Standing.REGIONAL_FALLBACK: "its lease is over: what may move goes on elsewhere",
    Standing.HELD_FOR_REVIEW: "held for review, `wattline site reviewed` ends that: nothing begins there",
}
_ORDER = (ResourceKind.SUPPLY, ResourceKind.LOOP, ResourceKind.RACK, ResourceKind.LINK)


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """One feed, PDU, rack, loop or share of a link; amounts are in `unit`."""

    kind: str  # feed | rack | loop | link
    name: str
    unit: str  # watts | bits_per_second
    cap: float  # as it is now
    usable: float  # less what the policy keeps free
    drawn: float | None  # None: nobody reads it, or not lately enough
    promised: float
    used: float  # what counts: drawn or promised, and the worst it could be where a meter is silent
    left: float  # below zero: over it
    read_seconds_ago: float | None
    rises_per_minute: float | None  # None: not known
    full_in_minutes: float | None  # at the present rise; None: not within a day
    throttles_in_minutes: float | None  # of a loop: until the first GPU on it would
    running_jobs: int
    fitting_jobs: int | None  # more of them, each a whole node, as far as this alone decides
    job_gpus: int | None  # of each of those
    say: str

    @property
    def share_left(self) -> float:
        return self.left / self.usable if self.usable > 0 else -1.0


class SiteConditions(msgspec.Struct, frozen=True, kw_only=True):
    """A site at a time; feeds first, then loops, racks and links, the tightest of each first."""

    site: str
    at: float
    emulated: bool
    caps_power: bool
    gpus: int
    gpus_free: int
    others_gpus: int  # held by what was not started through Wattline
    nodes_off: int
    agent: SiteRecord | None  # how its agent stands to the control plane; None: it has none
    rooms: tuple[Room, ...]
    say: tuple[str, ...]  # what stands out, the most pressing first


def judge_conditions(
    snapshot: Snapshot, policy: Policy, site: str, before: Before | None = None
) -> SiteConditions:
    """What is left at a site, and what follows from it."""
    plant = snapshot.plant
    number = plant.site_numbers[site]
    nodes = plant.nodes_of_site[site]
    hosts = _hosts(snapshot, nodes)
    rooms = []
    for resource, known in enumerate(plant.resources):
        is_here = number in plant.sites_of_link.get(resource, (plant.site_number_of_resource[resource],))
        if is_here and known.kind in _THINGS:
            rooms.append(_room(snapshot, policy, resource, hosts.get(resource), before or {}))
    names = [_THINGS[kind] for kind in _ORDER]
    rooms.sort(key=lambda room: (names.index(room.kind), room.share_left, room.name))
    known_site = plant.sites[site]
    return SiteConditions(
        site=site,
        at=snapshot.at,
        emulated=known_site.telemetry == "emulated",
        caps_power=known_site.caps_power,
        gpus=sum(plant.spots[node].node.gpus for node in nodes),
        gpus_free=sum(snapshot.gpus_free(node) for node in nodes),
        others_gpus=sum(int(_others(snapshot, plant.spots[node].node.name)) for node in nodes),
        nodes_off=sum(snapshot.is_off(node) for node in nodes),
        agent=snapshot.sites.get(site),
        rooms=tuple(rooms),
        say=(*_cut_off(snapshot.sites.get(site)), *_stands_out(rooms)),
    )


class _Hosts(msgspec.Struct):
    """The whole nodes that are free under something, and what one more of them would take of it."""

    free: int = 0
    gpus: int = 0
    watts: float = 0.0


def _hosts(snapshot: Snapshot, nodes: list[int]) -> dict[int, _Hosts]:
    found: dict[int, _Hosts] = {}
    for number in nodes:
        spot = snapshot.plant.spots[number]
        node = spot.node
        if node.device is None:
            continue
        watts = node.gpus * (node.device.limit_watts - node.device.idle_watts)
        is_free = snapshot.gpus_free(number) == node.gpus
        for resource, share in (*spot.power, (spot.loop_resource, 1.0)):
            hosts = found.setdefault(resource, _Hosts())
            hosts.free += is_free
            if share * watts > hosts.watts:  # the largest there: whoever fits then, fits
                hosts.gpus, hosts.watts = node.gpus, share * watts
    return found


def _room(snapshot: Snapshot, policy: Policy, resource: int, hosts: _Hosts | None, before: Before) -> Room:
    plant, thresholds = snapshot.plant, policy.thresholds
    known, max_age = plant.resources[resource], thresholds.reading_max_age
    may_use = usable(snapshot, resource, thresholds)
    used = snapshot.used(resource, max_age)
    is_read = snapshot.is_metered(resource) and snapshot.is_read(resource, max_age)
    drawn = snapshot.drawn(resource, max_age) if is_read else None
    rises = _rises_per_minute(drawn, snapshot, resource, before.get(known.name))
    full_in = None
    if drawn is not None and rises is not None and rises > 0:
        minutes = max(0.0, may_use - drawn) / rises
        full_in = minutes if minutes <= _LONGEST_MINUTES else None
    fitting = None
    if hosts is not None and hosts.watts > 0:
        fitting = min(hosts.free, int(max(0.0, may_use - used) / hosts.watts + 1e-9))
    jobs = [job for job in snapshot.jobs_on(resource) if snapshot.job(job).state is JobState.RUNNING]
    throttles = _throttles_in_minutes(snapshot, policy, jobs) if known.kind is ResourceKind.LOOP else None
    read_at = snapshot.read_at(resource)
    room = Room(
        kind=_THINGS[known.kind],
        name=known.name,
        unit=UNITS[known.kind],
        cap=float(snapshot.cap(resource)),
        usable=may_use,
        drawn=drawn,
        promised=float(snapshot.promised(resource)),
        used=used,
        left=may_use - used,
        read_seconds_ago=None if read_at is None else snapshot.at - read_at,
        rises_per_minute=rises,
        full_in_minutes=full_in,
        throttles_in_minutes=throttles,
        running_jobs=len(jobs),
        fitting_jobs=fitting,
        job_gpus=None if hosts is None or fitting is None else hosts.gpus,
        say="",
    )
    return msgspec.structs.replace(room, say=_tell(room, is_metered=snapshot.is_metered(resource)))


def _rises_per_minute(
    drawn: float | None, snapshot: Snapshot, resource: int, before: tuple[float, float] | None
) -> float | None:
    read_at = snapshot.read_at(resource)
    if drawn is None or before is None or read_at is None or read_at - before[1] < _LEAST_SPAN_SECONDS:
        return None
    return 60.0 * (drawn - before[0]) / (read_at - before[1])


def _throttles_in_minutes(snapshot: Snapshot, policy: Policy, jobs: list[str]) -> float | None:
    seconds = []
    for job in jobs:
        claim = snapshot.claim(job)
        if claim is not None:
            seconds.append(judge_pressure(snapshot, claim, policy.thresholds).seconds_to_throttle)
    known = [one for one in seconds if one is not None]
    return min(known) / 60.0 if known else None


def _tell(room: Room, *, is_metered: bool) -> str:
    """`loop cdu-3: 12 kW of 80 kW left; at the present rise it is full in 14 min; 2 jobs of 8 GPUs fit`."""
    amount = format_watts if room.unit == "watts" else format_bits_per_second
    if room.left >= 0:
        parts = [f"{amount(room.left)} of {amount(room.usable)} left"]
    else:
        parts = [f"{amount(-room.left)} over the {amount(room.usable)} that may be used"]
    if is_metered and room.drawn is None:
        age = room.read_seconds_ago
        since = "never read" if age is None else f"not read for {format_seconds(age)}"
        parts.append(f"{since}, so it counts as the worst it could be")
    if room.full_in_minutes is not None and room.left >= 0:
        parts.append(
            "at the present rise it is full now"
            if room.full_in_minutes < 0.1
            else f"at the present rise it is full in {format_named('minutes', room.full_in_minutes)}"
        )
    if room.throttles_in_minutes is not None:
        parts.append(f"GPUs on it throttle in {format_named('minutes', room.throttles_in_minutes)}")
    if room.fitting_jobs is not None:
        jobs = (
            f"{room.fitting_jobs} job{'' if room.fitting_jobs == 1 else 's'}"
            if room.fitting_jobs
            else "no job"
        )
        parts.append(f"{jobs} of {room.job_gpus} GPUs fit{'s' if room.fitting_jobs in (0, 1) else ''}")
    return f"{room.kind} {room.name.partition('/')[2] or room.name}: {'; '.join(parts)}"


def _others(snapshot: Snapshot, node: str) -> float:
    return snapshot.readings.get((node, OTHERS_GPUS), (0.0, 0.0))[0]


def _cut_off(agent: SiteRecord | None) -> tuple[str, ...]:
    """Before all else: while a site does not take work, what room it has is nobody's."""
    if agent is None or agent.takes_work:
        return ()
    return (f"{_STANDS[agent.standing]}: {agent.say}",)


def _stands_out(rooms: list[Room]) -> tuple[str, ...]:
    """What is over, what is filling up, what cannot be read; the least time left first."""
    pressing = [
        room
        for room in rooms
        if room.left < 0
        or room.full_in_minutes is not None
        or room.throttles_in_minutes is not None
        or "counts as the worst" in room.say
    ]
    pressing.sort(key=lambda room: (_minutes(room), room.share_left, room.name))
    return tuple([room.say for room in pressing])


def _minutes(room: Room) -> float:
    times = (room.full_in_minutes, room.throttles_in_minutes)
    return min([0.0] if room.left < 0 else [one for one in times if one is not None], default=float("inf"))
