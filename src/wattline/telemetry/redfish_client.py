"""Redfish: how is a management controller read, and told a power limit, whatever generation it is of?"""

from __future__ import annotations

import json
from typing import Any

from wattline.telemetry.asking import Asker, MeterError

ROOT = "/redfish/v1"
_MOST_BYTES = 1 << 20
_MOST_MEMBERS = 64

Resource = dict[str, Any]


class Redfish:
    """One controller; what it has is found by its links, as the standard asks."""

    def __init__(self, url: str, *, timeout_seconds: float, secret_file: str = "", ca_file: str = "") -> None:
        self._url = url
        self._asker = Asker(url, timeout_seconds=timeout_seconds, secret_file=secret_file, ca_file=ca_file)

    def get(self, path: str) -> Resource:
        """A resource; a MeterError where there is none."""
        if not path.startswith(ROOT):
            raise MeterError(f"{self._url}: a link leads out of {ROOT}: {path[:100]!r}")
        return self._parse(self._asker.ask(path, most_bytes=_MOST_BYTES), path)

    def find(self, resource: Resource, *names: str) -> Resource | None:
        """What a resource links to by the first of these names that it has; None: by none of them."""
        for name in names:
            link = resource.get(name)
            path = link.get("@odata.id") if isinstance(link, dict) else None
            if isinstance(path, str):
                return self.get(path)
        return None

    def members(self, collection: Resource | None) -> list[Resource]:
        """All that a collection holds, up to a number that nobody has of anything here."""
        links = collection.get("Members") if collection is not None else None
        found = []
        for link in (links if isinstance(links, list) else [])[:_MOST_MEMBERS]:
            path = link.get("@odata.id") if isinstance(link, dict) else None
            if isinstance(path, str):
                found.append(self.get(path))
        return found

    def chassis(self) -> list[Resource]:
        return self.members(self.find(self.get(ROOT), "Chassis"))

    def power_limit_watts(self) -> float | None:
        """What the whole machine is limited to now; None: to nothing."""
        metrics, power = self._limited()
        if metrics is not None:
            limit = metrics["PowerLimitWatts"]
            return None if limit.get("ControlMode") == "Disabled" else number(limit.get("SetPoint"))
        assert power is not None
        limit = power["PowerControl"][0].get("PowerLimit")
        return number(limit.get("LimitInWatts")) if isinstance(limit, dict) else None

    def set_power_limit(self, watts: float | None) -> None:
        """Limit the whole machine, or lift the limit; what it says afterwards counts, not what was asked."""
        metrics, power = self._limited()
        if metrics is not None:
            limit = (
                {"ControlMode": "Disabled"}
                if watts is None
                else {"SetPoint": round(watts), "ControlMode": "Automatic"}
            )
            self._patch(metrics, {"PowerLimitWatts": limit})
        else:
            assert power is not None
            wanted = None if watts is None else round(watts)
            self._patch(power, {"PowerControl": [{"PowerLimit": {"LimitInWatts": wanted}}]})
        now = self.power_limit_watts()
        if (now is None) != (watts is None) or (
            now is not None and watts is not None and abs(now - watts) > 1.0
        ):
            said = "no limit" if now is None else f"{now:g} W"
            asked = "no limit" if watts is None else f"{watts:g} W"
            raise MeterError(f"{self._url}: asked for {asked}, and it has {said}")

    def close(self) -> None:
        self._asker.close()

    def _limited(self) -> tuple[Resource | None, Resource | None]:
        """Where a limit is set: the newer way, else the older one."""
        for chassis in self.chassis():
            metrics = self.find(chassis, "EnvironmentMetrics")
            if metrics is not None and isinstance(metrics.get("PowerLimitWatts"), dict):
                return metrics, None
            power = self.find(chassis, "Power")
            control = power.get("PowerControl") if power is not None else None
            if isinstance(control, list) and control and isinstance(control[0], dict):
                return None, power
        raise MeterError(f"{self._url}: none of its chassis has a power limit")

    def _patch(self, resource: Resource, change: Resource) -> None:
        path = resource.get("@odata.id")
        if not isinstance(path, str) or not path.startswith(ROOT):
            raise MeterError(f"{self._url}: a resource does not say where it is")
        self._asker.ask(path, most_bytes=_MOST_BYTES, method="PATCH", body=json.dumps(change).encode())

    def _parse(self, body: bytes, path: str) -> Resource:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise MeterError(f"{self._url}{path[:100]}: no Redfish resource")
        return found


def number(value: object) -> float | None:
    """A number, bare or as a sensor that has a reading."""
    if isinstance(value, dict):
        value = value.get("Reading")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
