"""Billing: what did an attempt use, in GPU-hours, money, energy and carbon?

Priced at the site's constants, as quotas are written; the energy account of a report has the hours.
"""

from __future__ import annotations

from wattline.state import Plant, Usage
from wattline.twin.attempts import Attempt
from wattline.twin.renting import Renting
from wattline.twin.tally import Tally
from wattline.units import JOULES_PER_KWH, SECONDS_PER_HOUR


class Billing:
    """Each attempt is charged once, when it leaves or when a replay is over."""

    __slots__ = ("_plant", "_rents", "_tally")

    def __init__(self, plant: Plant, rents: Renting | None, tally: Tally) -> None:
        self._plant, self._rents, self._tally = plant, rents, tally

    def charge(self, attempt: Attempt, joules: float, now: float) -> Usage:
        site = self._plant.sites[attempt.site]
        device_usd = self._device_usd(attempt, now)
        self._tally.device_usd += device_usd
        self._tally.egress_usd += attempt.egress_usd
        kwh = joules * site.pue / JOULES_PER_KWH
        return Usage(
            attempt.gpus * (now - attempt.started_at) / SECONDS_PER_HOUR,
            device_usd + attempt.egress_usd + kwh * site.usd_per_kwh,
            kwh,
            kwh * site.grams_co2_per_kwh / 1000.0,
        )

    def _device_usd(self, attempt: Attempt, now: float) -> float:
        """What its GPUs cost by the hour since it holds them."""
        if self._rents is not None and attempt.site in self._plant.clouds:
            return self._rents.usd(attempt.site, attempt.gpus, attempt.started_at, now)
        device = self._plant.spots[attempt.nodes[0][0]].node.device
        gpu_hours = attempt.gpus * (now - attempt.started_at) / SECONDS_PER_HOUR
        return gpu_hours * (device.usd_per_hour if device else 0.0)
