"""What would one say of each picture in a meeting? One sentence each, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from wattline.twin.report import Report
from wattline.twin.timeline import Count, Series
from wattline.twin.wording import say_count, say_mass, say_minutes, say_money, say_share
from wattline.units import format_celsius, format_seconds, format_watts

_NO_WAIT_MINUTES = 1 / 60
_MUCH_IDLE = 0.05
_BY_WATTS = ("power.", "cooling.")
_SHARE_WATTS = "have the policy share watts by what is read (power_sharing, as capped-fleet does)"


def find_utilisation(report: Report, series: Series) -> str:
    gpus = say_count(report.gpus)
    if report.utilisation is not None:
        return f"{say_share(report.utilisation)} of {gpus} GPUs were busy while jobs arrived"
    busy = float(np.average(series.counts[:, Count.GPUS_BUSY], weights=series.hours))
    return f"On average {busy:,.0f} of {gpus} GPUs were busy"


def find_power(report: Report, series: Series) -> str:
    """The feed that came closest to its cap of that moment, and what passed one for longer than it may."""
    feed = int(series.tightness.argmax())
    watts, cap_watts = series.tightest_watts[feed].tolist()
    name = series.layout.feeds[feed].name
    said = f"Tightest on {name}: {format_watts(watts)} of {format_watts(cap_watts)} usable"
    if report.cap_violations:
        return f"{said}; {_say_over(report.cap_violations)}"
    return f"{said}; {'not for long, so that ' if watts > cap_watts else ''}no cap was violated"


def find_what_binds(report: Report) -> str:
    """What jobs waited for most of all, and what stood idle meanwhile; nothing where nobody was told why."""
    idle = _idle_share(report)
    rule = next(iter(report.waited_for), None)
    if rule is None or idle is None:
        return ""
    share = report.waited_for[rule] / sum(report.waited_for.values())
    stood = f"while {say_share(idle)} of all GPU-hours stood idle"
    said = f"Jobs waited for {rule} {say_share(share)} of their time, {stood}"
    if report.shares_watts or idle < _MUCH_IDLE or not rule.startswith(_BY_WATTS):
        return said
    return f"{said}. A job counts for the most it may draw: let it say less (peak_power), or {_SHARE_WATTS}"


def find_excess(report: Report) -> str:
    """What a policy took that its halls are not made for; nothing where it kept to their caps."""
    return f"{report.policy} had {_say_over(report.cap_violations)}" if report.cap_violations else ""


def _idle_share(report: Report) -> float | None:
    hours = report.gpus * report.simulated_hours
    return report.idle_gpu_hours / hours if hours > 0 else None


def _say_over(seconds_of: Mapping[str, float]) -> str:
    worst = max(seconds_of, key=lambda name: seconds_of[name])
    long, others = format_seconds(seconds_of[worst]), len(seconds_of) - 1
    if not others:
        return f"{worst} over its cap for {long}"
    beside = "another" if others == 1 else f"{say_count(others)} others"
    return f"{worst} and {beside} over their caps, at worst for {long}"


def find_heat(series: Series) -> str:
    """The place that came closest to where its GPUs give way."""
    limits = np.array([place.throttle_celsius for place in series.layout.places])
    if np.isnan(series.place_celsius).all():
        return "Nobody looked at temperatures"
    below = np.nanmin(np.where(np.isnan(series.place_celsius), np.inf, limits - series.place_celsius), axis=0)
    place = int(below.argmin())
    hottest = float(np.nanmax(series.place_celsius[:, place]))
    said = f"Hottest GPU {format_celsius(hottest)} in {series.layout.places[place].name}"
    if below[place] > 0:
        return f"{said}, {below[place]:.1f} K below throttling"
    return f"{said}: throttled, its limit is {format_celsius(float(limits[place]))}"


def find_queue(report: Report, series: Series) -> str:
    """What jobs waited to begin; where they did not, how many stood still at once, as paused jobs do too."""
    wait = report.wait_minutes
    if wait.p50 is None or wait.p95 is None:
        return "No job was started"
    if wait.p95 < _NO_WAIT_MINUTES:
        still = say_count(float(series.most_counts[:, Count.JOBS_WAITING].max()))
        return f"19 of 20 jobs that began did so at once; at most {still} waited or were paused at a time"
    half = "did not wait" if wait.p50 < _NO_WAIT_MINUTES else f"waited at most {say_minutes(wait.p50)}"
    return f"Half of the jobs {half}, one in twenty over {say_minutes(wait.p95)}"


def find_carbon(report: Report) -> str:
    carbon = None if report.carbon_kg is None else f"{say_mass(report.carbon_kg)} of CO₂e"
    cost = None if report.energy_usd is None else f"{say_money(report.energy_usd)} for energy"
    known = [each for each in (carbon, cost) if each is not None]
    return " and ".join(known) if known else "Neither carbon nor cost is known"
