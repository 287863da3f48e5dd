"""How would a facility be written? The way back from what `build_facility` made to a document.

Whatever changes a facility in memory can so be held to every check that a document passes.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from wattline.facility import (
    Device,
    Facility,
    Link,
    Loop,
    Node,
    Normals,
    Rack,
    Site,
    Slurm,
    Slurmrestd,
    Supply,
)
from wattline.spec.cloud import write_cloud_site
from wattline.spec.telemetry import write_power_caps, write_source


def write_facility(facility: Facility) -> dict[str, Any]:
    """The fields of a FacilityDocument, written out: no ranges, nothing left to defaults."""
    return {
        "facility": facility.name,
        "devices": {
            device.name: _device(device) for site in facility.sites for device in _devices(site).values()
        },
        "sites": {
            site.name: _site(site) if site.cloud is None else write_cloud_site(site)
            for site in facility.sites
        },
        "links": [_link(link) for link in facility.links],
    }


def _devices(site: Site) -> dict[str, Device]:
    nodes = (node for rack in site.racks for node in rack.nodes)
    return {node.device.name: node.device for node in nodes if node.device is not None}


def _device(device: Device) -> dict[str, Any]:
    return {
        "limit": f"{device.limit_watts!r}W",
        "least_limit": f"{device.least_limit_watts!r}W",
        "idle": f"{device.idle_watts!r}W",
        "throttle": f"{device.throttle_celsius!r}C",
        "slowdown": f"{device.slowdown_celsius!r}C",
        "shutdown": f"{device.shutdown_celsius!r}C",
        "kelvin_per_watt_air": device.kelvin_per_watt_air,
        "kelvin_per_watt_liquid": device.kelvin_per_watt_liquid,
        "usd_per_hour": device.usd_per_hour,
        "sure": device.sure,
    }


def _site(site: Site) -> dict[str, Any]:
    prefix = f"{site.name}/"
    feeds = [supply for supply in site.supplies if supply.parent is None]
    pdus = [supply for supply in site.supplies if supply.parent is not None]
    storage = site.storage
    return {
        "region": site.region,
        "tariff": {"energy": site.usd_per_kwh, "series": site.price_series or None},
        "carbon": {
            "zone": site.carbon_zone,
            "intensity": site.grams_co2_per_kwh,
            "series": site.carbon_series or None,
        },
        "weather": _weather(site.weather_series, site.weather_normals),
        "outlook": {"file": site.outlook_file} if site.outlook_file else None,
        "pue": site.pue,
        "gpu_hour": {name: device.usd_per_hour for name, device in _devices(site).items()},
        "feeds": {feed.name.removeprefix(prefix): _supply(feed) for feed in feeds},
        "pdus": {
            pdu.name.removeprefix(prefix): {**_supply(pdu), "feed": str(pdu.parent).removeprefix(prefix)}
            for pdu in pdus
        },
        "loops": {loop.name.removeprefix(prefix): _loop(loop) for loop in site.loops},
        "racks": {rack.name.removeprefix(prefix): _rack(rack, prefix) for rack in site.racks},
        "storage": {
            "name": storage.name.removeprefix(prefix),
            "throughput": f"{storage.throughput_bytes_per_second!r}B/s",
            "capacity": None if storage.capacity_bytes is None else f"{storage.capacity_bytes!r}B",
            "price": storage.usd_per_gigabyte_month,
        },
        "starts": {
            "at_once": site.starts.at_once,
            "within": f"{site.starts.within_seconds!r}s",
            "spacing": f"{site.starts.spacing_seconds!r}s",
            "loads_at_once": site.starts.loads_at_once,
        },
        "telemetry": (
            {"source": site.telemetry, "time_scale": site.thermal_time_scale}
            if site.telemetry in ("emulated", "none")
            else [write_source(source, prefix) for source in site.sources]
        ),
        "power_caps": site.power_caps and write_power_caps(site.power_caps, prefix),
        "engine": site.engine,
        "slurm": _slurm(site.slurm),
        "agent": site.agent,
        "sleep": site.sleep and {"wake": f"{site.sleep.wake_seconds!r}s", "asleep": site.sleep.asleep},
    }


def _supply(supply: Supply) -> dict[str, Any]:
    return {
        "rating": f"{supply.rating_watts!r}W",
        "continuous": supply.continuous_fraction,
        "overload": supply.overload_factor,
        "overload_for": f"{supply.overload_seconds!r}s",
        "ramp": None if supply.ramp_watts_per_minute is None else f"{supply.ramp_watts_per_minute!r}W/min",
        "swing": None if supply.swing_watts is None else f"{supply.swing_watts!r}W",
        "swing_period": f"{supply.swing_seconds!r}s",
    }


def _loop(loop: Loop) -> dict[str, Any]:
    flow = loop.flow_litres_per_minute
    return {
        "kind": loop.kind.value,
        "capacity": f"{loop.capacity_watts!r}W",
        "supply": f"{loop.supply_celsius!r}C",
        "approach": loop.approach_kelvin,
        "time_constant": f"{loop.time_constant_seconds!r}s",
        "flow": None if flow is None else f"{flow!r}L/min",
    }


def _rack(rack: Rack, prefix: str) -> dict[str, Any]:
    return {
        "row": rack.row.removeprefix(prefix),
        "cap": f"{rack.cap_watts!r}W",
        "power": [supply.removeprefix(prefix) for supply in rack.supplies],
        "redundant": rack.redundant,
        "loop": rack.loop.removeprefix(prefix),
        "switch": rack.switch.removeprefix(prefix),
        "nodes": [_nodes(kind[0], list(like)) for kind, like in groupby(rack.nodes, key=_kind)],
    }


def _kind(node: Node) -> tuple[dict[str, Any], bool]:
    return _node(node), bool(node.host)


def _nodes(written: dict[str, Any], like: list[Node]) -> dict[str, Any]:
    return {**written, "count": len(like), "hosts": [node.host for node in like if node.host]}


def _weather(series: str, normals: Normals | None) -> dict[str, Any] | None:
    if normals is None:
        return {"series": series} if series else None
    told = {
        "january": f"{normals.january_celsius!r}C",
        "july": f"{normals.july_celsius!r}C",
        "swing": f"{normals.swing_kelvin!r}K",
        "humidity": normals.humidity,
        "warmest_hour": normals.warmest_hour,
    }
    return {"normals": told}


def _slurm(slurm: Slurm) -> dict[str, Any]:
    return {
        "partition": slurm.partition or None,
        "account": slurm.account or None,
        "user": slurm.user or None,
        "power_license": slurm.power_license or None,
        "watts_per_license": f"{slurm.watts_per_license!r}W",
        "python": slurm.python or None,
        "sbatch": list(slurm.sbatch),
        "rest": None if slurm.rest is None else _slurmrestd(slurm.rest),
    }


def _slurmrestd(rest: Slurmrestd) -> dict[str, Any]:
    return {
        "url": rest.url or None,
        "socket": rest.socket or None,
        "user": rest.user or None,
        "token_file": rest.token_file or None,
        "timeout": f"{rest.timeout_seconds!r}s",
        "job": dict(rest.job),
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "gpu": None if node.device is None else node.device.name,
        "gpus": node.gpus,
        "cpus": node.cpus,
        "other": f"{node.other_watts!r}W",
        "tier": node.tier,
    }


def _link(link: Link) -> dict[str, Any]:
    return {
        "name": link.name,
        "between": list(link.between),
        "bandwidth": f"{link.bits_per_second!r}bps",
        "latency": f"{link.latency_seconds!r}s",
        "shares": {traffic.value: share for traffic, share in link.shares.items()},
        "egress": link.usd_per_gigabyte,
    }
