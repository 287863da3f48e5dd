"""What does a facility document stand for? Ranges are unrolled, defaults filled in, names get their site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from wattline.facility import (
    CoolingKind,
    Device,
    Facility,
    Link,
    Loop,
    Node,
    Rack,
    Site,
    Sleep,
    Slurm,
    Slurmrestd,
    Storage,
    Supply,
    TrafficClass,
)
from wattline.spec.cloud import CloudSiteDocument, build_cloud_site
from wattline.spec.facility import FacilityDocument
from wattline.spec.ranges import names_in
from wattline.spec.site import (
    FeedDocument,
    LinkDocument,
    LoopDocument,
    NodesDocument,
    PduDocument,
    RackDocument,
    SiteDocument,
)
from wattline.spec.slurm import SlurmDocument, SlurmrestdDocument


@dataclass(frozen=True, slots=True)
class _Cooling:
    """What a cooling kind does where a site says nothing; each figure is assumed, within published ranges."""

    approach_kelvin: float
    time_constant_seconds: float
    pue: float


_COOLING = {
    CoolingKind.AIR: _Cooling(10.0, 45.0, 1.5),
    CoolingKind.REAR_DOOR: _Cooling(7.0, 60.0, 1.28),
    CoolingKind.DIRECT_TO_CHIP: _Cooling(4.0, 15.0, 1.12),
    CoolingKind.IMMERSION: _Cooling(6.0, 300.0, 1.06),
}
# Control is small but must never wait; gradients are the most; what is left serves checkpoints first.
_SHARES = {
    TrafficClass.CONTROL: 0.05,
    TrafficClass.TRAINING: 0.45,
    TrafficClass.CHECKPOINT: 0.35,
    TrafficClass.ARTIFACT: 0.15,
}


def build_facility(document: FacilityDocument, source: str = "") -> Facility:
    """Unroll a checked document."""
    devices = document.known_devices()
    return Facility(
        name=document.facility,
        sites=tuple(_any_site(name, site, devices) for name, site in document.sites.items()),
        links=tuple(_link(link) for link in document.links),
        source=source,
    )


def _any_site(name: str, site: SiteDocument | CloudSiteDocument, devices: Mapping[str, Device]) -> Site:
    if isinstance(site, CloudSiteDocument):
        return build_cloud_site(name, site, devices[site.cloud.instance.gpu])
    return _site(name, site, devices)


def _site(name: str, site: SiteDocument, devices: Mapping[str, Device]) -> Site:
    priced = {
        model: replace(device, usd_per_hour=site.gpu_hour.get(model, device.usd_per_hour))
        for model, device in devices.items()
    }
    racks = [(rack, document) for written, document in site.racks.items() for rack in names_in(written)]
    return Site(
        name=name,
        region=site.region,
        supplies=(
            *(_supply(name, feed, document) for feed, document in site.feeds.items()),
            *(_supply(name, pdu, document) for pdu, document in site.pdus.items()),
        ),
        loops=tuple(_loop(name, loop, document) for loop, document in site.loops.items()),
        racks=tuple(_rack(name, rack, document, priced) for rack, document in racks),
        storage=Storage(
            name=f"{name}/{site.storage.name}",
            throughput_bytes_per_second=site.storage.throughput,
            capacity_bytes=site.storage.capacity,
            usd_per_gigabyte_month=site.storage.price,
        ),
        usd_per_kwh=site.tariff.energy,
        carbon_zone=site.carbon.zone,
        grams_co2_per_kwh=site.carbon.intensity,
        pue=_usual_pue(site) if site.pue is None else site.pue,
        telemetry=site.telemetry[0].source,
        engine=site.engine,
        thermal_time_scale=site.telemetry[0].time_scale,
        price_series=site.tariff.series or "",
        carbon_series=site.carbon.series or "",
        weather_series=(site.weather.series or "") if site.weather else "",
        weather_normals=site.weather.normals.build() if site.weather and site.weather.normals else None,
        sleep=None if site.sleep is None else Sleep(wake_seconds=site.sleep.wake, asleep=site.sleep.asleep),
        starts=site.starts.starts,
        outlook_file=site.outlook.file if site.outlook else "",
        sources=tuple([one.build(name) for one in site.telemetry if one.source not in ("emulated", "none")]),
        power_caps=None if site.power_caps is None else site.power_caps.build(name),
        caps_power=site.is_emulated or site.power_caps is not None,
        slurm=_slurm(site.slurm),
        agent=site.agent,
    )


def _slurm(document: SlurmDocument) -> Slurm:
    return Slurm(
        partition=document.partition or "",
        account=document.account or "",
        user=document.user or "",
        power_license=document.power_license or "",
        watts_per_license=document.watts_per_license,
        python=document.python or "",
        sbatch=document.sbatch,
        rest=None if document.rest is None else _slurmrestd(document.rest),
    )


def _slurmrestd(document: SlurmrestdDocument) -> Slurmrestd:
    return Slurmrestd(
        url=document.url or "",
        socket=document.socket or "",
        user=document.user or "",
        token_file=document.token_file or "",
        timeout_seconds=document.timeout,
        job=tuple(document.job.items()),
    )


def _usual_pue(site: SiteDocument) -> float:
    """By cooling kind, weighted with what each loop can carry."""
    capacity = sum(loop.capacity for loop in site.loops.values())
    return sum(loop.capacity * _COOLING[loop.kind].pue for loop in site.loops.values()) / capacity


def _supply(site: str, name: str, document: FeedDocument) -> Supply:
    return Supply(
        name=f"{site}/{name}",
        rating_watts=document.rating,
        continuous_fraction=document.continuous,
        overload_factor=document.overload,
        overload_seconds=document.overload_for,
        parent=f"{site}/{document.feed}" if isinstance(document, PduDocument) else None,
        ramp_watts_per_minute=document.ramp,
        swing_watts=document.swing,
        swing_seconds=document.swing_period,
    )


def _loop(site: str, name: str, document: LoopDocument) -> Loop:
    usual = _COOLING[document.kind]
    return Loop(
        name=f"{site}/{name}",
        kind=document.kind,
        capacity_watts=document.capacity,
        supply_celsius=document.supply,
        approach_kelvin=usual.approach_kelvin if document.approach is None else document.approach,
        time_constant_seconds=(
            usual.time_constant_seconds if document.time_constant is None else document.time_constant
        ),
        flow_litres_per_minute=document.flow,
    )


def _rack(site: str, name: str, document: RackDocument, devices: Mapping[str, Device]) -> Rack:
    machines = [(group, host) for group in document.nodes for host in _hosts(group)]
    return Rack(
        name=f"{site}/{name}",
        row=f"{site}/{document.row}",
        cap_watts=document.cap,
        supplies=tuple(f"{site}/{supply}" for supply in document.power),
        redundant=len(document.power) == 2 if document.redundant is None else document.redundant,
        loop=f"{site}/{document.loop}",
        switch=f"{site}/{document.switch or name}",
        nodes=tuple(
            Node(
                name=f"{site}/{name}-n{number}",
                rack=f"{site}/{name}",
                device=devices[group.gpu] if group.gpu else None,
                gpus=group.gpus,
                cpus=group.cpus,
                other_watts=group.other,
                tier=group.tier,
                host=host,
            )
            for number, (group, host) in enumerate(machines, start=1)
        ),
    )


def _hosts(group: NodesDocument) -> tuple[str, ...]:
    named = tuple(host for written in group.hosts for host in names_in(written))
    return named or ("",) * group.count


def _link(document: LinkDocument) -> Link:
    return Link(
        name=document.name,
        between=document.between,
        bits_per_second=document.bandwidth,
        latency_seconds=document.latency,
        shares=_shares(document),
        usd_per_gigabyte=document.egress,
    )


def _shares(document: LinkDocument) -> dict[TrafficClass, float]:
    if not document.shares:
        return dict(_SHARES)
    silent = [traffic for traffic in TrafficClass if traffic not in document.shares]
    left = 1.0 - sum(document.shares.values())
    return {**document.shares, **{traffic: left / len(silent) for traffic in silent}}
