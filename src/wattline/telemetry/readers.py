"""Readers: who is asked for the readings of a facility's real sites?"""

from __future__ import annotations

from collections.abc import Callable

from wattline.facility import Facility, Site, Source
from wattline.telemetry.listening import Listeners, MeterSource


def readers_of(facility: Facility) -> Listeners:
    """A listener for every source of every site; what each needs is loaded only where it is named."""
    sources = [
        _READERS[source.kind](site, source)
        for site in facility.sites
        if site.telemetry not in ("emulated", "none")
        for source in site.sources
    ]
    return Listeners(sources)


def _prometheus(site: Site, source: Source) -> MeterSource:
    from wattline.telemetry.prometheus import PrometheusSource

    return PrometheusSource(site, source)


def _nvml(site: Site, source: Source) -> MeterSource:
    from wattline.telemetry.nvml import NvmlSource

    return NvmlSource(site, source)


def _redfish(site: Site, source: Source) -> MeterSource:
    from wattline.telemetry.redfish import RedfishSource

    return RedfishSource(site, source)


def _snmp(site: Site, source: Source) -> MeterSource:
    from wattline.telemetry.snmp import SnmpSource

    return SnmpSource(site, source)


def _host(site: Site, source: Source) -> MeterSource:
    from wattline.telemetry.host import HostSource

    return HostSource(site, source)


_READERS: dict[str, Callable[[Site, Source], MeterSource]] = {
    "prometheus": _prometheus,
    "nvml": _nvml,
    "redfish": _redfish,
    "snmp": _snmp,
    "host": _host,
}
