"""Made-up replays to draw and to tell of: figures that fit together, and days that look like days."""

from __future__ import annotations

from typing import Any

import numpy as np

from wattline.twin.layout import FeedLine, Layout, Place
from wattline.twin.report import JobCounts, LostGpuHours, Minutes, Report, SiteReport, sizes_of
from wattline.twin.timeline import Count, Sample, Timeline

BEGINS_AT = 1704067200.0  # 2024-01-01T00:00Z
HOUR = 3600.0
# Racks, usable watts of each feed, USD per kWh, kg per kWh.
SITES = {
    "ashburn": (32, 640e3, 0.075, 0.37),
    "lulea": (24, 560e3, 0.045, 0.02),
    "singapore": (12, 280e3, 0.16, 0.42),
}


def a_layout(sites: tuple[str, ...] = tuple(SITES), *, racks: int | None = None) -> Layout:
    feeds = [FeedLine(name=f"{s}/{f}", site=s, cap_watts=_of(s)[1], resource=0) for s in sites for f in "ab"]
    places = [
        Place(name=f"{site}/r{rack:02d}", site=site, throttle_celsius=85.0)
        for site in sites
        for rack in range(1, (racks or _of(site)[0]) + 1)
    ]
    return Layout(sites=sites, feeds=tuple(feeds), places=tuple(places), place_kind="rack", place_of_node=())


def a_timeline(*, days: float = 2.0, layout: Layout | None = None, seed: int = 7) -> Timeline:
    """Load that follows the day and the week; a pump that fails in ashburn two thirds of the way."""
    layout = layout or a_layout()
    chance = np.random.default_rng(seed)
    timeline = Timeline(BEGINS_AT, layout)
    usd, kg = np.zeros(len(layout.sites)), np.zeros(len(layout.sites))
    step = max(60.0, days * 86400.0 / 8000)
    moments = np.arange(0.0, days * 86400.0, step)
    drift = 0.0
    warmth = chance.normal(0.0, 2.0, len(layout.places))
    for elapsed in moments:
        at = BEGINS_AT + float(elapsed)
        day, week = elapsed / 86400.0 % 1.0, elapsed / 86400.0 % 7.0
        drift = 0.995 * drift + chance.normal(0.0, 0.008)
        load = float(
            np.clip(0.72 + 0.14 * np.sin(2 * np.pi * (day - 0.3)) - 0.15 * (week > 5) + drift, 0.05, 1.0)
        )
        fault = 0.64 < elapsed / (days * 86400.0) < 0.66
        celsius = 40.0 + 34.0 * load + warmth + chance.normal(0.0, 1.0, len(layout.places))
        celsius += [14.0 * (fault and place.site == "ashburn" and at % 3 < 2) for place in layout.places]
        hottest = tuple(float(value) for value in celsius)
        if timeline.due(at):
            timeline.sample(at, Sample(site_usd=tuple(usd), site_kg=tuple(kg), place_celsius=hottest))
        waiting = max(0.0, 180.0 * (load - 0.8)) ** 1.2
        for count, value in zip(
            Count, (round(2500 * load), 2500 - 24 * fault, round(waiting), 90 * load), strict=True
        ):
            timeline.note_count(count, at, value)
        for column, feed in enumerate(layout.feeds):
            share = min(
                0.97, load * (0.85 if feed.site == "lulea" else 0.7) + column % 2 * 0.08 * (load - 0.6)
            )
            timeline.note_watts(column, at, feed.cap_watts * (share + 0.03 * abs(chance.normal())))
        for number, site in enumerate(layout.sites):
            _, watts, price, intensity = _of(site)
            kwh = watts * load * step / 3.6e6
            usd[number] += kwh * price * (1 + 0.4 * np.sin(2 * np.pi * (day - 0.5)))
            kg[number] += kwh * intensity * (1 - 0.3 * np.sin(np.pi * day))
    closing = Sample(site_usd=tuple(usd), site_kg=tuple(kg), place_celsius=hottest)
    timeline.finish(BEGINS_AT + days * 86400.0, closing)
    return timeline


def _of(site: str) -> tuple[int, float, float, float]:
    return SITES.get(site, (8, 200e3, 0.1, 0.2))


def a_report(**changes: Any) -> Report:
    sites = {
        "ashburn": SiteReport(
            energy_kwh=812_345.0,
            cost_usd=61_200.0,
            carbon_kg=300_567.0,
            peak_kw=598.4,
            pue=1.29,
            tue=1.41,
            utilisation=0.81,
        ),
        "lulea": SiteReport(
            energy_kwh=640_000.0,
            cost_usd=29_100.0,
            carbon_kg=12_900.0,
            peak_kw=541.0,
            pue=1.05,
            tue=1.09,
            utilisation=0.88,
        ),
        "singapore": SiteReport(
            energy_kwh=301_002.0,
            cost_usd=48_930.0,
            carbon_kg=126_421.0,
            peak_kw=240.5,
            pue=1.18,
            tue=1.22,
            utilisation=0.62,
        ),
    }
    figures: dict[str, Any] = {
        "trace": "philly.csv",
        "facility": "three-sites",
        "policy": "default",
        "truth": "perturbed",
        "arrival_scale": 1.0,
        "jobs": JobCounts(submitted=5300, completed=5234, refused=12, unfinished=54),
        "gpus": 2500,
        "simulated_hours": 1440.0,
        "wall_seconds": 212.5,
        "cpu_seconds": 208.1,
        "jobs_per_cpu_second": 25.5,
        "wait_minutes": Minutes(mean=21.3, p50=2.2, p95=131.0),
        "completion_minutes": Minutes(mean=340.0, p50=61.0, p95=2210.0),
        "useful_gpu_hours": 2_731_400.0,
        "lost_gpu_hours": LostGpuHours(throttle=210.0, restart=95.5, preempt=41.0, pause=12.25),
        "utilisation": 0.79,
        "energy_kwh": 1_753_347.0,
        "cost_usd": 139_230.0,
        "carbon_kg": 439_888.0,
        "pue": 1.18,
        "tue": 1.26,
        "peak_kw": 1379.9,
        "cap_violation_seconds": 0.0,
        "throttle_gpu_seconds": 756_000.0,
        "power_throttle_gpu_seconds": 720_000.0,
        "heat_throttle_gpu_seconds": 36_000.0,
        "shutdowns": 0,
        "preemptions": 14,
        "migrations": 63,
        "sites": sites,
        "sizes": sizes_of([1] * 90 + [64] * 10, [60.0] * 90 + [7200.0] * 10),
        "refused_because": {"gang.size": 9, "quota.gpu_hours": 3},
        "lines_refused": 2,
        "begins_at": "2024-01-01T00:00:00Z",
        "seed": 7,
        "digest": "b0a1c2d3e4f5a6b7c8d9",
    }
    return Report(**(figures | changes))
