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
from wattline.state import Claim, JobRequest, Outcome, Snapshot, Verdict

# A job that runs hot for long is held further from the limit than one that is soon over.
_MARGIN_KELVIN = {Thermal.LOW: 0.0, Thermal.NORMAL: 2.0, Thermal.HIGH: 5.0}
_STOPPED_FLOW_FRACTION = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatForecast:
    """What one node's hottest GPU comes to if nothing changes."""

    node: str
    loop: str
    unread_seconds: float | None  # how old its last reading is, where that is too old to be believed
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


def predict_die_resting(snapshot: Snapshot, loop: int, device: Device, time_scale: float) -> float:
    """What an idle device on a loop comes to: the best guess where nobody reads its temperature."""
    known, conditions = snapshot.plant.loop_of_resource[loop], snapshot.conditions
    supply_celsius = conditions.supply_celsius.get(loop, known.supply_celsius)
    coolant_celsius = conditions.coolant_celsius.get(loop, (supply_celsius, snapshot.at))[0]
    resistance = _parameters(device, known, time_scale).resistance(conditions.flow_fraction.get(loop, 1.0))
    return coolant_celsius + resistance * device.idle_watts


def predict_die_now(
    snapshot: Snapshot, node: int, device: Device, limit_celsius: float, thresholds: Thresholds
) -> float:
    """How hot a node's hottest GPU counts as now; a reading too old counts as the worst it could be."""
    spot, read = snapshot.plant.spots[node], snapshot.conditions.node_celsius.get(node)
    if read is None:
        return predict_die_resting(snapshot, spot.loop_resource, device, spot.site.thermal_time_scale)
    return limit_celsius if snapshot.at - read[1] > thresholds.reading_max_age else read[0]


def is_at_limit(snapshot: Snapshot, request: JobRequest, node: int, thresholds: Thresholds) -> bool:
    """Whether a node is too hot for this job before it has begun, or nobody knows that it is not."""
    device = snapshot.plant.spots[node].node.device
    if device is None:
        return False
    limit = device.throttle_celsius - _MARGIN_KELVIN[request.thermal]
    return predict_die_now(snapshot, node, device, limit, thresholds) >= limit


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
    now = predict_die_now(snapshot, node, device, limit, thresholds)
    read = conditions.node_celsius.get(node)
    age = 0.0 if read is None else snapshot.at - read[1]
    state = ThermalState(coolant_celsius=coolant, die_celsius=now)
    steady = None if flow <= _STOPPED_FLOW_FRACTION else predict_steady(parameters, inputs).die_celsius
    if steady is not None and steady <= limit and now < limit and coolant <= limit:
        seconds: float | None = None
    else:
        seconds = predict_seconds_to(limit, parameters, state, inputs)
    return HeatForecast(
        node=spot.node.name,
        loop=spot.rack.loop,
        unread_seconds=age if age > thresholds.reading_max_age else None,
        now_celsius=now,
        steady_celsius=steady,
        limit_celsius=limit,
        seconds_to_throttle=seconds,
    )


def judge_heat(
    snapshot: Snapshot, request: JobRequest, claim: Claim, thresholds: Thresholds
) -> list[Verdict]:
    """May these GPUs run at full claim without throttling?

    The hottest node on each loop speaks for the others; nothing is said where there is no GPU to heat.
    """
    hottest: dict[int, HeatForecast] = {}
    for node, _ in claim.nodes if claim.gpu_watts else ():
        loop = snapshot.plant.spots[node].loop_resource
        forecast = predict_heat(
            snapshot,
            node,
            gpu_watts=claim.gpu_watts,
            loop_watts=snapshot.used(loop, thresholds.reading_max_age) + dict(claim.amounts).get(loop, 0),
            thresholds=thresholds,
            margin_kelvin=_MARGIN_KELVIN[request.thermal],
        )
        if forecast is not None and (loop not in hottest or forecast.now_celsius > hottest[loop].now_celsius):
            hottest[loop] = forecast
    return [_judge_forecast(request, forecast) for forecast in hottest.values()]


def _judge_forecast(request: JobRequest, forecast: HeatForecast) -> Verdict:
    numbers = {"limit_celsius": forecast.limit_celsius}
    if forecast.steady_celsius is not None:
        numbers["predicted_celsius"] = round(forecast.steady_celsius, 2)
    seconds = forecast.seconds_to_throttle
    short_job = request.max_duration_seconds if request.thermal is Thermal.LOW else None
    if seconds is None or (short_job is not None and seconds > short_job):
        return Verdict.allow("heat.throttle", forecast.loop, **numbers)
    if forecast.steady_celsius is not None and forecast.steady_celsius > forecast.limit_celsius:
        numbers["short_by_celsius"] = round(forecast.steady_celsius - forecast.limit_celsius, 2)
    if forecast.unread_seconds is not None:
        return Verdict(
            rule="heat.throttle",
            subject=forecast.loop,
            outcome=Outcome.WAIT,
            numbers=numbers | {"unread_seconds": forecast.unread_seconds},
            say=say_unread(forecast),
            change=f"{forecast.node} is read again",
        )
    if forecast.now_celsius >= forecast.limit_celsius:
        numbers["now_celsius"] = round(forecast.now_celsius, 2)
    numbers["throttles_after_minutes"] = round(seconds / 60, 3)
    return Verdict.wait("heat.throttle", forecast.loop, change=f"{forecast.loop} cools", **numbers)


def say_unread(forecast: HeatForecast) -> str:
    """Why a cool node counts as hot; its age is among the numbers, which are no news when they change."""
    too_old = forecast.unread_seconds is not None
    return f"{forecast.node} was last read too long ago and counts as at its limit" if too_old else ""
