"""Heat: would this job's GPUs throttle where they stand, and when?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from wattline.facility import Device, Loop
from wattline.physics import (
    ThermalInputs,
    ThermalParameters,
    ThermalState,
    predict_seconds_to,
    predict_steady,
    thermal_parameters,
)
from wattline.spec.pipeline import Thermal
from wattline.spec.policy import Thresholds
from wattline.state import Claim, JobRequest, Snapshot, Verdict

# A job that runs hot for long is held further from the limit than one that is soon over.
_MARGIN_KELVIN = {Thermal.LOW: 0.0, Thermal.NORMAL: 2.0, Thermal.HIGH: 5.0}
_STOPPED_FLOW_FRACTION = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatForecast:
    """What one node's hottest GPU comes to if nothing changes."""

    loop: str
    now_celsius: float
    steady_celsius: float | None  # None: no flow, so it only rises
    limit_celsius: float
    seconds_to_throttle: float | None  # None: never


@lru_cache(maxsize=1024)
def _parameters(device: Device, loop: Loop, time_scale: float) -> ThermalParameters:
    return thermal_parameters(device, loop, time_scale)


def predict_die_steady(
    snapshot: Snapshot, loop: int, device: Device, time_scale: float, gpu_watts: float, loop_watts: float
) -> float | None:
    """Where a device at these watts would end on a loop as it is now; None where it has no flow."""
    known = snapshot.plant.loop_of_resource[loop]
    flow = snapshot.conditions.flow_fraction.get(loop, 1.0)
    if flow <= _STOPPED_FLOW_FRACTION:
        return None
    inputs = ThermalInputs(
        supply_celsius=snapshot.conditions.supply_celsius.get(loop, known.supply_celsius),
        flow_fraction=flow,
        loop_watts=loop_watts,
        device_watts=gpu_watts,
    )
    return predict_steady(_parameters(device, known, time_scale), inputs).die_celsius


def predict_heat(
    snapshot: Snapshot,
    node: int,
    *,
    gpu_watts: float,
    loop_watts: float,
    thresholds: Thresholds,
    margin_kelvin: float = 0.0,
) -> HeatForecast | None:
    """Predict a node's GPUs at these watts on a loop that carries these; None for a node without GPUs."""
    spot = snapshot.plant.spots[node]
    device = spot.node.device
    if device is None:
        return None
    conditions = snapshot.conditions
    parameters = _parameters(device, spot.loop, spot.site.thermal_time_scale)
    supply_celsius = conditions.supply_celsius.get(spot.loop_resource, spot.loop.supply_celsius)
    flow = conditions.flow_fraction.get(spot.loop_resource, 1.0)
    limit = device.throttle_celsius - margin_kelvin
    inputs = ThermalInputs(
        supply_celsius=supply_celsius, flow_fraction=flow, loop_watts=loop_watts, device_watts=gpu_watts
    )
    coolant = conditions.coolant_celsius.get(spot.loop_resource, (supply_celsius, snapshot.at))[0]
    read = conditions.node_celsius.get(node)
    if read is None:
        now = coolant + parameters.resistance(flow) * device.idle_watts
    elif snapshot.at - read[1] > thresholds.reading_max_age:
        now = limit  # a reading too old counts as the worst it could be
    else:
        now = read[0]
    state = ThermalState(coolant_celsius=coolant, die_celsius=now)
    steady = None if flow <= _STOPPED_FLOW_FRACTION else predict_steady(parameters, inputs).die_celsius
    if steady is not None and steady <= limit and now < limit and coolant <= limit:
        seconds: float | None = None
    else:
        seconds = predict_seconds_to(limit, parameters, state, inputs)
    return HeatForecast(
        loop=spot.rack.loop,
        now_celsius=now,
        steady_celsius=steady,
        limit_celsius=limit,
        seconds_to_throttle=seconds,
    )


def judge_heat(
    snapshot: Snapshot, request: JobRequest, claim: Claim, node: int, thresholds: Thresholds
) -> Verdict | None:
    """May these GPUs run at full claim here without throttling? None where there is no GPU to heat."""
    if claim.gpu_watts == 0:
        return None
    spot = snapshot.plant.spots[node]
    added = dict(claim.amounts).get(spot.loop_resource, 0)
    forecast = predict_heat(
        snapshot,
        node,
        gpu_watts=claim.gpu_watts,
        loop_watts=snapshot.used(spot.loop_resource, thresholds.reading_max_age) + added,
        thresholds=thresholds,
        margin_kelvin=_MARGIN_KELVIN[request.thermal],
    )
    if forecast is None:
        return None
    numbers = {"limit_celsius": forecast.limit_celsius}
    if forecast.steady_celsius is not None:
        numbers["predicted_celsius"] = round(forecast.steady_celsius, 2)
    seconds = forecast.seconds_to_throttle
    short_job = request.max_duration_seconds if request.thermal is Thermal.LOW else None
    if seconds is None or (short_job is not None and seconds > short_job):
        return Verdict.allow("heat.throttle", forecast.loop, **numbers)
    numbers["throttles_after_minutes"] = round(seconds / 60, 3)
    if forecast.steady_celsius is not None:
        numbers["short_by_celsius"] = round(max(0.0, forecast.steady_celsius - forecast.limit_celsius), 2)
    return Verdict.wait("heat.throttle", forecast.loop, change=f"{forecast.loop} cools", **numbers)
