"""Heat: would this job's GPUs throttle where they stand, and when?"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec

from wattline.facility import Device
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
from wattline.state import Claim, JobRequest, Outcome, Plant, Snapshot, Verdict

# A job that runs hot for long is held further from the limit than one that is soon over.
_MARGIN_KELVIN = {Thermal.LOW: 0.0, Thermal.NORMAL: 2.0, Thermal.HIGH: 5.0}
_STOPPED_FLOW_FRACTION = 1e-6
# Real draw exceeds the rating now and then; nothing is known to exceed it by this much for long.
BEYOND_LIMIT = 1.25


class HeatForecast(msgspec.Struct, frozen=True, kw_only=True):
    """What one node's hottest GPU comes to if nothing changes."""

    node: str
    loop: str
    unread_seconds: float | None  # how old its last reading is, where that is too old to be believed
    now_celsius: float
    steady_celsius: float | None  # None: no flow, so it only rises
    limit_celsius: float
    seconds_to_throttle: float | None  # None: never


@lru_cache(maxsize=4096)
def _parameters(plant: Plant, cooling: int) -> ThermalParameters:
    known = plant.coolings[cooling]
    return thermal_parameters(known.device, known.loop, known.time_scale)


@lru_cache(maxsize=4096)
def _rises(plant: Plant, cooling: int, flow_fraction: float) -> tuple[float, float] | None:
    """What a steady die gains by each watt of its loop and each of its own; None where it has no flow."""
    if flow_fraction <= _STOPPED_FLOW_FRACTION:
        return None
    parameters = _parameters(plant, cooling)
    inputs = ThermalInputs(supply_celsius=0.0, flow_fraction=flow_fraction, loop_watts=1.0)
    return predict_steady(parameters, inputs).coolant_celsius, parameters.resistance(flow_fraction)


def predict_die_steady(snapshot: Snapshot, cooling: int, gpu_watts: float, loop_watts: float) -> float | None:
    """Where a device at these watts would end on its loop as it is now; None where it has no flow."""
    known, conditions = snapshot.plant.coolings[cooling], snapshot.conditions
    rises = _rises(snapshot.plant, cooling, conditions.flow_fraction.get(known.loop_resource, 1.0))
    if rises is None:
        return None
    supply_celsius = conditions.supply_celsius.get(known.loop_resource, known.loop.supply_celsius)
    return supply_celsius + loop_watts * rises[0] + gpu_watts * rises[1]


def predict_die_resting(snapshot: Snapshot, cooling: int) -> float:
    """What an idle device comes to: the best guess where nobody reads its temperature."""
    known, conditions = snapshot.plant.coolings[cooling], snapshot.conditions
    loop = known.loop_resource
    coolant = conditions.coolant_celsius.get(loop)
    if coolant is not None:
        return coolant[0] + predict_resting_kelvin(snapshot, cooling)
    supply_celsius = conditions.supply_celsius.get(loop, known.loop.supply_celsius)
    return supply_celsius + predict_resting_kelvin(snapshot, cooling)


def predict_resting_kelvin(snapshot: Snapshot, cooling: int) -> float:
    """How far an idle device is above its coolant."""
    loop = snapshot.plant.coolings[cooling].loop_resource
    return _resting_kelvin(snapshot.plant, cooling, snapshot.conditions.flow_fraction.get(loop, 1.0))


@lru_cache(maxsize=4096)
def _resting_kelvin(plant: Plant, cooling: int, flow_fraction: float) -> float:
    return _parameters(plant, cooling).resistance(flow_fraction) * plant.coolings[cooling].device.idle_watts


def predict_die_now(snapshot: Snapshot, node: int, limit_celsius: float, thresholds: Thresholds) -> float:
    """How hot a node's hottest GPU counts as now; a reading too old counts as the worst it could be.

    That is its limit, unless its loop is still read: no die is hotter than its coolant and all it can draw
    make it.
    """
    read = snapshot.conditions.node_celsius.get(node)
    cooling = snapshot.plant.bays[snapshot.plant.spots[node].bay].cooling
    if read is None:
        return predict_die_resting(snapshot, cooling)
    if snapshot.is_node_read(node, read[1], thresholds.reading_max_age):
        return read[0]
    return min(limit_celsius, _predict_die_worst(snapshot, cooling, thresholds))


def _predict_die_worst(snapshot: Snapshot, cooling: int, thresholds: Thresholds) -> float:
    known, conditions = snapshot.plant.coolings[cooling], snapshot.conditions
    coolant = conditions.coolant_celsius.get(known.loop_resource)
    rises = _rises(snapshot.plant, cooling, conditions.flow_fraction.get(known.loop_resource, 1.0))
    if coolant is None or rises is None:
        return math.inf
    age = snapshot.at - snapshot.loop_read_at(known.loop_resource, coolant[1])
    if age > thresholds.reading_max_age:
        return math.inf
    return coolant[0] + rises[1] * BEYOND_LIMIT * known.device.limit_watts


def is_at_limit(snapshot: Snapshot, request: JobRequest, node: int, thresholds: Thresholds) -> bool:
    """Whether a node is too hot for this job before it has begun, or nobody knows that it is not."""
    device = snapshot.plant.spots[node].node.device
    if device is None:
        return False
    limit = limit_celsius(request, device)
    return predict_die_now(snapshot, node, limit, thresholds) >= limit


def limit_celsius(request: JobRequest, device: Device) -> float:
    """How hot this job's GPUs may get."""
    return device.throttle_celsius - _MARGIN_KELVIN[request.thermal]


class Coolness:
    """Where a job's GPUs would surely stay below their limit, looked up once for each kind of cooling."""

    __slots__ = ("_request", "_snapshot", "_steady", "_thresholds")

    def __init__(self, snapshot: Snapshot, request: JobRequest, thresholds: Thresholds) -> None:
        self._snapshot, self._request, self._thresholds = snapshot, request, thresholds
        self._steady: dict[tuple[int, float, float], tuple[float, float]] = {}

    def share(self, node: int, gpu_watts: float, loop_watts: float) -> float | None:
        """How near its limit a node would end (1 at it), where it surely stays below; None where it may not.

        `loop_watts` are what the job adds to its loop.
        """
        snapshot = self._snapshot
        plant = snapshot.plant
        cooling = plant.bays[plant.spots[node].bay].cooling
        key = (cooling, gpu_watts, loop_watts)
        known = self._steady.get(key)
        if known is None:
            known = self._steady[key] = self._look_up(cooling, gpu_watts, loop_watts)
        steady, limit = known
        if steady > limit:
            return None
        read = snapshot.conditions.node_celsius.get(node)
        if read is not None:
            # As `predict_die_now`: what is read lately enough counts as it is.
            now = read[0]
            if not snapshot.is_node_read(node, read[1], self._thresholds.reading_max_age):
                now = predict_die_now(snapshot, node, limit, self._thresholds)
            if now >= limit:
                return None
        return steady / limit

    def judge(self, node: int, gpu_watts: float, loop_watts: float) -> Verdict | None:
        """What `judge_heat` says of a node that surely stays below its limit; None where it may not."""
        if self.share(node, gpu_watts, loop_watts) is None:
            return None
        spot = self._snapshot.plant.spots[node]
        cooling = self._snapshot.plant.bays[spot.bay].cooling
        steady, limit = self._steady[cooling, gpu_watts, loop_watts]
        return _allow(self._request, spot.rack.loop, limit, steady)

    def _look_up(self, cooling: int, gpu_watts: float, loop_watts: float) -> tuple[float, float]:
        snapshot, known = self._snapshot, self._snapshot.plant.coolings[cooling]
        loop = known.loop_resource
        limit = limit_celsius(self._request, known.device)
        carried = snapshot.used(loop, self._thresholds.reading_max_age) + loop_watts
        steady = predict_die_steady(snapshot, cooling, gpu_watts, carried)
        coolant = snapshot.conditions.coolant_celsius.get(loop)
        if steady is None or (coolant is not None and coolant[0] > limit):
            return math.inf, limit
        return (math.inf if predict_die_resting(snapshot, cooling) >= limit else steady), limit


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
    cooling = snapshot.plant.bays[spot.bay].cooling
    supply_celsius = conditions.supply_celsius.get(spot.loop_resource, spot.loop.supply_celsius)
    limit = device.throttle_celsius - margin_kelvin
    coolant = conditions.coolant_celsius.get(spot.loop_resource, (supply_celsius, snapshot.at))[0]
    now = predict_die_now(snapshot, node, limit, thresholds)
    read = conditions.node_celsius.get(node)
    age = 0.0 if read is None else snapshot.at - snapshot.node_read_at(node, read[1])
    steady = predict_die_steady(snapshot, cooling, gpu_watts, loop_watts)
    if steady is not None and steady <= limit and now < limit and coolant <= limit:
        seconds: float | None = None
    else:
        inputs = ThermalInputs(
            supply_celsius=supply_celsius,
            flow_fraction=conditions.flow_fraction.get(spot.loop_resource, 1.0),
            loop_watts=loop_watts,
            device_watts=gpu_watts,
        )
        state = ThermalState(coolant_celsius=coolant, die_celsius=now)
        seconds = predict_seconds_to(limit, _parameters(snapshot.plant, cooling), state, inputs)
    return HeatForecast(
        node=spot.node.name,
        loop=spot.rack.loop,
        unread_seconds=age if age > thresholds.reading_max_age and now >= limit else None,
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
    hottest: dict[int, tuple[float, int]] = {}  # by loop: how hot a node is, and which
    for node, _ in claim.nodes if claim.gpu_watts else ():
        spot = snapshot.plant.spots[node]
        loop, device = spot.loop_resource, spot.node.device
        if device is None:
            continue
        now = predict_die_now(snapshot, node, limit_celsius(request, device), thresholds)
        if loop not in hottest or now > hottest[loop][0]:
            hottest[loop] = (now, node)
    amounts, found = dict(claim.amounts), list[Verdict]()
    for loop, (_, node) in hottest.items():
        forecast = predict_heat(
            snapshot,
            node,
            gpu_watts=claim.gpu_watts,
            loop_watts=snapshot.used(loop, thresholds.reading_max_age) + amounts.get(loop, 0),
            thresholds=thresholds,
            margin_kelvin=_MARGIN_KELVIN[request.thermal],
        )
        assert forecast is not None
        found.append(_judge_forecast(request, forecast))
    return found


def _judge_forecast(request: JobRequest, forecast: HeatForecast) -> Verdict:
    seconds = forecast.seconds_to_throttle
    short_job = request.max_duration_seconds if request.thermal is Thermal.LOW else None
    if seconds is None or (short_job is not None and seconds > short_job):
        return _allow(request, forecast.loop, forecast.limit_celsius, forecast.steady_celsius)
    numbers = {"limit_celsius": forecast.limit_celsius}
    if forecast.steady_celsius is not None:
        numbers["predicted_celsius"] = round(forecast.steady_celsius, 2)
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


def _allow(request: JobRequest, loop: str, limit_celsius: float, steady_celsius: float | None) -> Verdict:
    numbers = {"limit_celsius": limit_celsius}
    if steady_celsius is not None:
        numbers["predicted_celsius"] = round(steady_celsius, 2)
    return Verdict(
        rule="heat.throttle", subject=loop, outcome=Outcome.ALLOW, job=request.job, numbers=numbers
    )


def say_unread(forecast: HeatForecast) -> str:
    """Why a cool node counts as hot; its age is among the numbers, which are no news when they change."""
    too_old = forecast.unread_seconds is not None
    return f"{forecast.node} was last read too long ago and counts as at its limit" if too_old else ""
