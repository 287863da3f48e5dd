"""Sites: who carries out a cap at each site of a facility?"""

from __future__ import annotations

from collections.abc import Mapping

from wattline.actuators.actuator import Actuator
from wattline.actuators.emulated import EmulatedActuator, PowerCapped
from wattline.errors import UnavailableError, UsageError
from wattline.facility import Facility, Site


class NoActuator:
    """A site where nothing sets limits: without a cap is all that anybody can be."""

    name = "none"
    kinds = frozenset[str]()
    is_slow = False

    def __init__(self, site: str) -> None:
        self._site = site

    def begin(self, attempt: str, nodes: Mapping[str, int]) -> None: ...

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        if fraction < 1.0:
            raise UnavailableError(
                f"{attempt} is not capped: nothing at {self._site} sets power limits",
                hint=f"power_caps of {self._site} in the facility document",
            )

    def end(self, attempt: str) -> None: ...

    def close(self) -> None: ...


class SiteActuators:
    """All sites of a facility as one actuator: an attempt is turned by its site's."""

    name = "sites"
    kinds = frozenset({"cap_power"})

    def __init__(self, facility: Facility, emulated: PowerCapped) -> None:
        self._by_site = {site.name: _actuator(site, emulated) for site in facility.sites}
        self._by_attempt: dict[str, Actuator] = {}

    @property
    def is_slow(self) -> bool:
        return any(actuator.is_slow for actuator in self._by_site.values())

    def begin(self, attempt: str, nodes: Mapping[str, int]) -> None:
        """A place is at one site, which stands before the slash in the names of its nodes."""
        actuator = self._by_site[next(iter(nodes)).partition("/")[0]]
        self._by_attempt[attempt] = actuator
        actuator.begin(attempt, nodes)

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        if attempt not in self._by_attempt:
            raise UsageError(f"cap power: attempt {attempt} does not run here")
        self._by_attempt[attempt].set_power_cap(attempt, fraction)

    def end(self, attempt: str) -> None:
        actuator = self._by_attempt.pop(attempt, None)
        if actuator is not None:
            actuator.end(attempt)

    def close(self) -> None:
        for actuator in self._by_site.values():
            actuator.close()


def _actuator(site: Site, emulated: PowerCapped) -> Actuator:
    if site.telemetry == "emulated":
        return EmulatedActuator(emulated)
    if site.power_caps is None:
        return NoActuator(site.name)
    # Loaded by who names them: the helper of a node starts with this package, and should be small.
    if site.power_caps.by == "helper":
        from wattline.actuators.node_caps import NodeCapActuator

        return NodeCapActuator(site, site.power_caps)
    from wattline.actuators.redfish import RedfishActuator

    return RedfishActuator(site, site.power_caps)
