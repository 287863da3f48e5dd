"""Pressure: does a running job have to give way, to what, and how much room is left around it?"""

from __future__ import annotations

from dataclasses import dataclass

from wattline.policy.headroom.carrying import part_carried
from wattline.policy.headroom.heat import HeatForecast, predict_heat, say_unread
from wattline.policy.headroom.power import UNITS, usable
from wattline.spec.policy import Thresholds
from wattline.state import POWER, Claim, Outcome, ResourceKind, Snapshot, Verdict

# `minutes_to_throttle` where that never happens: longer than anything people compare it with.
NEVER_MINUTES = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """The room around a job, and what presses, if anything does."""

    power_headroom: float
    cooling_headroom: float
    link_headroom: float
    minutes_to_throttle: float
    hottest_celsius: float
    presses: Verdict | None
    seconds_to_throttle: float | None

    def values(self) -> dict[str, object]:
        """What a rung's `when` may speak of."""
        return {
            "power_headroom": self.power_headroom,
            "cooling_headroom": self.cooling_headroom,
            "link_headroom": self.link_headroom,
            "minutes_to_throttle": self.minutes_to_throttle,
            "hottest_celsius": self.hottest_celsius,
        }


def judge_pressure(
    snapshot: Snapshot, claim: Claim, thresholds: Thresholds, *, gpu_watts: float | None = None
) -> Pressure:
    """Look at every cap above a job's claim and at the heat of its GPUs.

    `gpu_watts` asks what would be if its GPUs drew that much; otherwise meters are believed.
    """
    shares = {ResourceKind.LINK: 1.0, ResourceKind.LOOP: 1.0, ResourceKind.RACK: 1.0}
    tightest: tuple[float, Verdict] | None = None
    for resource, _ in claim.amounts:
        known = snapshot.plant.resources[resource]
        cap = usable(snapshot, resource, thresholds)
        drawn = snapshot.drawn(resource, thresholds.reading_max_age)
        if known.kind is ResourceKind.SUPPLY and not snapshot.is_read(resource, thresholds.reading_max_age):
            drawn *= part_carried(snapshot, claim.nodes[0][0], resource)
        share = 1.0 - drawn / cap if cap > 0 else -1.0
        group = ResourceKind.RACK if known.kind in POWER else known.kind
        if group in shares:
            shares[group] = min(shares[group], share)
        if drawn > cap and (tightest is None or share < tightest[0]):
            unit = UNITS[known.kind]
            verdict = Verdict(
                rule=known.kind,
                subject=known.name,
                outcome=Outcome.PRESS,
                numbers={f"drawn_{unit}": drawn, f"cap_{unit}": cap, f"short_by_{unit}": drawn - cap},
            )
            tightest = (share, verdict)
    forecast = predict_hottest(snapshot, claim, thresholds, gpu_watts)
    presses = tightest[1] if tightest else None
    seconds = forecast.seconds_to_throttle if forecast else None
    near = seconds is not None and seconds <= thresholds.throttle_horizon
    if presses is None and near and forecast is not None and seconds is not None:
        presses = _heat_verdict(forecast, seconds)
    return Pressure(
        power_headroom=shares[ResourceKind.RACK],
        cooling_headroom=shares[ResourceKind.LOOP],
        link_headroom=shares[ResourceKind.LINK],
        minutes_to_throttle=NEVER_MINUTES if seconds is None else seconds / 60,
        hottest_celsius=forecast.now_celsius if forecast else 0.0,
        presses=presses,
        seconds_to_throttle=seconds,
    )


def read_gpu_watts(snapshot: Snapshot, claim: Claim, node: int, thresholds: Thresholds) -> float:
    """What a GPU of a job draws there: the meter's word, or its claim where there is no fresh one."""
    read = snapshot.conditions.node_gpu_watts.get(node)
    if read is None or snapshot.at - snapshot.node_read_at(node, read[1]) > thresholds.reading_max_age:
        return claim.gpu_watts
    return read[0]


def predict_hottest(
    snapshot: Snapshot, claim: Claim, thresholds: Thresholds, gpu_watts: float | None = None
) -> HeatForecast | None:
    """The node that would throttle first; where none would, the one that is hottest now."""
    worst: HeatForecast | None = None
    for node, gpus in claim.nodes:
        if gpus == 0:
            continue
        spot = snapshot.plant.spots[node]
        measured = read_gpu_watts(snapshot, claim, node, thresholds)
        loop_watts = snapshot.drawn(spot.loop_resource, thresholds.reading_max_age)
        if gpu_watts is not None:
            loop_watts += gpus * max(0.0, gpu_watts - measured)
        forecast = predict_heat(
            snapshot,
            node,
            gpu_watts=measured if gpu_watts is None else gpu_watts,
            loop_watts=loop_watts,
            thresholds=thresholds,
        )
        if forecast is not None and (worst is None or _urgency(forecast) < _urgency(worst)):
            worst = forecast
    return worst


def _urgency(forecast: HeatForecast) -> tuple[float, float]:
    seconds = forecast.seconds_to_throttle
    return (float("inf") if seconds is None else seconds, -forecast.now_celsius)


def _heat_verdict(forecast: HeatForecast, seconds: float) -> Verdict:
    numbers = {"limit_celsius": forecast.limit_celsius}
    if forecast.unread_seconds is None:
        numbers["now_celsius"] = round(forecast.now_celsius, 2)
        numbers["throttles_after_minutes"] = round(seconds / 60, 4)
    else:
        numbers["unread_seconds"] = forecast.unread_seconds
    if forecast.steady_celsius is not None:
        numbers["predicted_celsius"] = round(forecast.steady_celsius, 2)
    return Verdict(
        rule="heat.throttle",
        subject=forecast.loop,
        outcome=Outcome.PRESS,
        numbers=numbers,
        say=say_unread(forecast),
    )
