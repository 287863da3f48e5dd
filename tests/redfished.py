"""A management controller for tests: Redfish resources that can be read, and limits that can be set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from metering import reply, serving

ROOT = "/redfish/v1"


def link(path: str) -> dict[str, str]:
    return {"@odata.id": f"{ROOT}{path}"}


class Controller:
    """Resources by path; what is patched is merged, as the standard says."""

    def __init__(self) -> None:
        self.resources: dict[str, dict[str, Any]] = {"": {}}
        self.asked: list[str] = []
        self.heeds = True  # whether a limit that is set is kept

    def put(self, path: str, **fields: Any) -> None:
        self.resources[path] = fields

    def collect(self, path: str, *members: str) -> None:
        self.put(path, Members=[link(f"{path}/{member}") for member in members])

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.removeprefix(ROOT).rstrip("/")
        self.asked.append(f"{request.command} {path}")
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        resource = self.resources.get(path)
        if resource is None:
            reply(request, b'{"error": {"message": "not found"}}', status=404)
            return
        if request.command == "PATCH" and self.heeds:
            _merge(resource, json.loads(body))
        reply(request, json.dumps({"@odata.id": f"{ROOT}{path}", **resource}).encode())


def _merge(into: dict[str, Any], change: dict[str, Any]) -> None:
    for name, value in change.items():
        known = into.get(name)
        if isinstance(value, dict) and isinstance(known, dict):
            _merge(known, value)
        elif isinstance(value, list) and isinstance(known, list):
            for one, other in zip(known, value, strict=False):
                _merge(one, other)
        else:
            into[name] = value


@contextmanager
def served(controller: Controller) -> Iterator[str]:
    with serving(controller.answer) as url:
        yield url


def a_node(*, watts: float = 2400.0, limit: float | None = None, is_new: bool = True) -> Controller:
    """A machine of one chassis, with EnvironmentMetrics, or with the Power of older ones."""
    controller = Controller()
    controller.put("", Chassis=link("/Chassis"))
    controller.collect("/Chassis", "1")
    if is_new:
        controller.put("/Chassis/1", EnvironmentMetrics=link("/Chassis/1/EnvironmentMetrics"))
        mode = "Disabled" if limit is None else "Automatic"
        controller.put(
            "/Chassis/1/EnvironmentMetrics",
            PowerWatts={"Reading": watts},
            PowerLimitWatts={"SetPoint": limit, "ControlMode": mode},
        )
    else:
        controller.put("/Chassis/1", Power=link("/Chassis/1/Power"))
        control = {"PowerConsumedWatts": watts, "PowerLimit": {"LimitInWatts": limit}}
        controller.put("/Chassis/1/Power", PowerControl=[control])
    return controller


def a_cdu(*, says_heat: bool = True) -> Controller:
    """A coolant distribution unit with one circuit of the plant and two of racks."""
    controller = Controller()
    controller.put("", ThermalEquipment=link("/ThermalEquipment"))
    controller.put("/ThermalEquipment", CDUs=link("/ThermalEquipment/CDUs"))
    controller.collect("/ThermalEquipment/CDUs", "1")
    unit = "/ThermalEquipment/CDUs/1"
    sides = ("PrimaryCoolantConnectors", "SecondaryCoolantConnectors")
    controller.put(
        unit, **{side: link(f"{unit}/{side}") for side in sides}, LeakDetection=link(f"{unit}/LeakDetection")
    )
    controller.collect(f"{unit}/{sides[0]}", "1")
    controller.put(f"{unit}/{sides[0]}/1", SupplyTemperatureCelsius={"Reading": 28.0})
    controller.collect(f"{unit}/{sides[1]}", "1", "2")
    for number, kilowatts in (("1", 20.0), ("2", 25.0)):
        heat = {"HeatRemovedkW": {"Reading": kilowatts}} if says_heat else {}
        controller.put(
            f"{unit}/{sides[1]}/{number}",
            SupplyTemperatureCelsius={"Reading": 31.0 + int(number)},
            FlowLitersPerMinute={"Reading": 60.0},
            DeltaTemperatureCelsius={"Reading": 5.0},
            **heat,
        )
    controller.put(f"{unit}/LeakDetection", LeakDetectors=link(f"{unit}/LeakDetection/LeakDetectors"))
    controller.collect(f"{unit}/LeakDetection/LeakDetectors", "tray")
    controller.put(f"{unit}/LeakDetection/LeakDetectors/tray", Name="drip tray", DetectorState="OK")
    return controller


def a_pdu(watts: float = 9000.0) -> Controller:
    controller = Controller()
    controller.put("", PowerEquipment=link("/PowerEquipment"))
    controller.put("/PowerEquipment", RackPDUs=link("/PowerEquipment/RackPDUs"))
    controller.collect("/PowerEquipment/RackPDUs", "1")
    controller.put("/PowerEquipment/RackPDUs/1", Metrics=link("/PowerEquipment/RackPDUs/1/Metrics"))
    controller.put("/PowerEquipment/RackPDUs/1/Metrics", PowerWatts={"Reading": watts})
    return controller
