"""Redfish: what do the controllers of nodes, PDUs and cooling units say of what they draw and carry?

Of a node its chassis, of a rack or supply a PDU, of a loop the coolant distribution unit: its primary side is
what the plant supplies, its secondary side the coolant that reaches the racks. A leak is said at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from wattline.facility import Site, Source
from wattline.telemetry.asking import MeterError
from wattline.telemetry.labels import Labels
from wattline.telemetry.reading import Reading
from wattline.telemetry.redfish_client import ROOT, Redfish, Resource, number
from wattline.telemetry.remarks import Remarks
from wattline.telemetry.sifting import Sample, Sieve

_AT_ONCE = 8
# A litre of water takes 4.18 kJ for each kelvin: watts for each litre a minute and kelvin.
_WATTS_PER_LITRE_MINUTE_KELVIN = 4180.0 / 60.0

Told = tuple[str, float]


class RedfishSource:
    """The controllers of one site, a few at a time."""

    kind = "redfish"

    def __init__(self, site: Site, source: Source) -> None:
        self.site, self.every_seconds = site.name, source.every_seconds
        self.remarks = Remarks()
        labels = Labels(site, {})
        self._sieve = Sieve(self.kind, site, labels, self.remarks, source.every_seconds)
        kinds = ("node", "loop", "rack", "supply")
        self._kinds = {
            name: next(kind for kind in kinds if name in labels.of_kind[kind]) for name in source.targets
        }
        self._clients = {
            name: Redfish(
                url,
                timeout_seconds=source.timeout_seconds,
                secret_file=source.secret_file,
                ca_file=source.ca_file,
            )
            for name, url in source.targets.items()
        }

    def read(self, now: float) -> list[Reading]:
        """What all say; MeterError where none does."""
        failures: list[MeterError] = []
        samples: dict[str, dict[str, Sample]] = {}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(self._ask, self._clients))
        for name, answer in zip(self._clients, answers, strict=True):
            if isinstance(answer, MeterError):
                failures.append(answer)
                self.remarks.hold(name, "controller", answer.message, "its controller answers again")
                continue
            self.remarks.hold(name, "controller", None, "its controller answers again")
            told, leaks = answer
            for quantity, value in told:
                samples.setdefault(quantity, {})[name] = Sample(now, value, name)
            say = "; ".join(leaks) or None
            self.remarks.hold(name, "leak", say, "its leak detectors say that all is well again")
        if failures and len(failures) == len(self._clients):
            raise failures[0]
        found = []
        for quantity, of_names in samples.items():
            found += self._sieve.sift(quantity, f"{quantity} (Redfish)", of_names, now)
        return found

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _ask(self, name: str) -> tuple[list[Told], list[str]] | MeterError:
        client, kind = self._clients[name], self._kinds[name]
        try:
            if kind == "node":
                return list(_read_node(client)), []
            if kind == "loop":
                return _read_loop(client)
            return list(_read_pdu(client, f"{kind}_watts")), []
        except MeterError as error:
            return error


def _read_node(client: Redfish) -> Iterator[Told]:
    """What all chassis of a machine draw, and the warmest air that goes into one."""
    watts, inlets = [], []
    for chassis in client.chassis():
        metrics = client.find(chassis, "EnvironmentMetrics")
        drawn = number(metrics.get("PowerWatts")) if metrics is not None else None
        if drawn is None and (power := client.find(chassis, "Power")) is not None:
            drawn = _first(power.get("PowerControl"), "PowerConsumedWatts")
        if drawn is not None:
            watts.append(drawn)
        thermal = client.find(chassis, "Thermal")
        sensors = thermal.get("Temperatures") if thermal is not None else None
        for sensor in sensors if isinstance(sensors, list) else ():
            is_intake = isinstance(sensor, dict) and sensor.get("PhysicalContext") == "Intake"
            if is_intake and (celsius := number(sensor.get("ReadingCelsius"))) is not None:
                inlets.append(celsius)
    if watts:
        yield "node_watts", sum(watts)
    if inlets:
        yield "inlet_celsius", max(inlets)
    if not watts and not inlets:
        raise MeterError("its controller tells neither power nor temperature")


def _read_pdu(client: Redfish, quantity: str) -> Iterator[Told]:
    equipment = client.find(client.get(ROOT), "PowerEquipment") or {}
    units = client.members(client.find(equipment, "RackPDUs", "FloorPDUs", "PowerShelves"))
    metrics = [client.find(unit, "Metrics") or {} for unit in units]
    watts = [drawn for one in metrics if (drawn := number(one.get("PowerWatts"))) is not None]
    if not watts:
        raise MeterError("its controller has no PDU that tells its power")
    yield quantity, sum(watts)


def _read_loop(client: Redfish) -> tuple[list[Told], list[str]]:
    equipment = client.find(client.get(ROOT), "ThermalEquipment") or {}
    units = client.members(client.find(equipment, "CDUs"))
    if not units:
        raise MeterError("its controller has no coolant distribution unit")
    primary = [one for unit in units for one in client.members(client.find(unit, "PrimaryCoolantConnectors"))]
    secondary = [
        one for unit in units for one in client.members(client.find(unit, "SecondaryCoolantConnectors"))
    ]
    leaks = [say for unit in units for say in _leaks(client, unit)]
    told: list[Told] = []
    for quantity, values, gather in (
        ("supply_celsius", _values(primary, "SupplyTemperatureCelsius"), max),
        ("coolant_celsius", _values(secondary, "SupplyTemperatureCelsius"), max),
        ("flow_litres_per_minute", _values(secondary, "FlowLitersPerMinute"), sum),
        ("loop_heat_watts", [_heat_watts(one) for one in secondary], sum),
    ):
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):  # a sum with one part missing would be too little
            collect: Callable[[list[float]], float] = gather
            told.append((quantity, collect(known)))
    return told, leaks


def _values(connectors: list[Resource], name: str) -> list[float | None]:
    return [number(connector.get(name)) for connector in connectors]


def _heat_watts(connector: Resource) -> float | None:
    """What it says that it takes away; else what its flow does at the difference of its temperatures."""
    kilowatts = number(connector.get("HeatRemovedkW"))
    if kilowatts is not None:
        return 1000.0 * kilowatts
    flow, kelvin = (
        number(connector.get("FlowLitersPerMinute")),
        number(connector.get("DeltaTemperatureCelsius")),
    )
    return None if flow is None or kelvin is None else _WATTS_PER_LITRE_MINUTE_KELVIN * flow * kelvin


def _leaks(client: Redfish, unit: Resource) -> Iterator[str]:
    detection = client.find(unit, "LeakDetection") or {}
    for detector in client.members(client.find(detection, "LeakDetectors")):
        state = detector.get("DetectorState")
        if state in ("Warning", "Critical"):
            yield f"leak detector {str(detector.get('Name') or detector.get('Id'))[:60]} says {state}"


def _first(items: object, name: str) -> float | None:
    if not isinstance(items, list) or not items or not isinstance(items[0], dict):
        return None
    return number(items[0].get(name))
