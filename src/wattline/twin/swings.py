"""Swings: how far did work in step swing the load of each feed that minds?"""

from __future__ import annotations

from collections.abc import Sequence

from wattline.physics.swing import predict_joint_swing_watts, predict_swing_watts
from wattline.state import JobRequest, Plant, peak_watts_on


class SwingMeter:
    """Follows all feeds that declare what they bear."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        supplies = [supply for site in plant.facility.sites for supply in site.supplies]
        self._periods = {
            plant.resource_number[one.name]: one.swing_seconds
            for one in supplies
            if one.swing_watts is not None
        }
        self._on: dict[int, dict[str, float]] = {supply: {} for supply in self._periods}
        self.worst_watts: dict[str, float] = {plant.resources[one].name: 0.0 for one in self._periods}

    @staticmethod
    def of(plant: Plant) -> SwingMeter | None:
        """None where no feed minds."""
        meter = SwingMeter(plant)
        return meter if meter.worst_watts else None

    def begin(self, request: JobRequest, nodes: Sequence[tuple[int, int]], cap_fraction: float) -> None:
        if request.communicating_watts is None:
            return
        changed: set[int] = set()
        for node, gpus in nodes:
            peak = peak_watts_on(request, self._plant, node, gpus, cap_fraction) / max(1, gpus)
            watts = predict_swing_watts(gpus, peak, request.communicating_watts)
            for supply, share in self._plant.spots[node].power:
                if supply in self._on and request.step_seconds >= self._periods[supply]:
                    there = self._on[supply]
                    there[request.job] = there.get(request.job, 0.0) + share * watts
                    changed.add(supply)
        for supply in changed:
            name = self._plant.resources[supply].name
            joint = predict_joint_swing_watts(self._on[supply].values())
            self.worst_watts[name] = max(self.worst_watts[name], joint)

    def end(self, job: str) -> None:
        for there in self._on.values():
            there.pop(job, None)
