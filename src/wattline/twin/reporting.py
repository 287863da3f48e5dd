"""Reporting: the figures of a run, from what its world counted and its truth metered."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import UNSET

from wattline.control import Standing
from wattline.twin.report import (
    FeedReport,
    JobCounts,
    LostGpuHours,
    Minutes,
    Report,
    ScalingReport,
    SiteReport,
    sizes_of,
)
from wattline.twin.sleeping import SleepingWorld
from wattline.units import JOULES_PER_KWH, SECONDS_PER_HOUR

if TYPE_CHECKING:
    from wattline.state import Starts
    from wattline.twin.run import Setting
    from wattline.twin.tally import Tally
    from wattline.twin.truth import EnergyTally
    from wattline.twin.waiting_for import WaitingFor
    from wattline.twin.world import TwinWorld


def report_of(
    setting: Setting,
    world: TwinWorld,
    starts: Starts,
    waiting_for: WaitingFor,
    *,
    digest: str,
    wall_seconds: float,
    cpu_seconds: float,
    slos: Iterable[Standing] = (),
) -> Report:
    """Waits and utilisation over the time in which jobs arrived, all else to the end."""
    tally, energy = world.tally, world.truth.tally
    gpus_of = {
        site.name: sum(node.gpus for rack in site.racks for node in rack.nodes)
        for site in setting.facility.sites
    }
    clouds = {site.name for site in setting.facility.sites if site.cloud is not None}
    gpus = setting.facility.gpus
    busy_gpu_seconds = sum(busy for site, busy in tally.busy_gpu_seconds.items() if site not in clouds)
    window = max(0.0, tally.last_arrival_at - setting.begins_at)
    it_joules = sum(site.it_joules for site in energy.sites.values())
    facility_joules = sum(site.facility_joules for site in energy.sites.values())
    compute_joules = sum(site.compute_joules for site in energy.sites.values())
    return Report(
        trace=setting.name,
        facility=setting.facility.name,
        policy=setting.decided_by or setting.policy.policy,
        truth="exact" if setting.exact else "perturbed",
        arrival_scale=setting.arrival_scale,
        jobs=JobCounts(
            submitted=tally.submitted,
            completed=tally.completed,
            refused=tally.refused.total(),
            unfinished=tally.submitted - tally.completed - tally.refused.total(),
        ),
        gpus=gpus,
        simulated_hours=(world.now() - setting.begins_at) / SECONDS_PER_HOUR,
        wall_seconds=wall_seconds,
        cpu_seconds=cpu_seconds,
        jobs_per_cpu_second=tally.submitted / cpu_seconds if cpu_seconds > 0 else None,
        wait_minutes=Minutes.of_seconds(tally.wait_seconds),
        completion_minutes=Minutes.of_seconds(tally.completion_seconds),
        useful_gpu_hours=tally.useful_gpu_seconds / SECONDS_PER_HOUR,
        lost_gpu_hours=_lost(tally),
        utilisation=_share(busy_gpu_seconds, gpus * window),
        energy_kwh=facility_joules / JOULES_PER_KWH,
        cost_usd=tally.device_usd + tally.egress_usd + sum(site.usd for site in energy.sites.values()),
        carbon_kg=sum(site.kg_co2e for site in energy.sites.values()),
        pue=_share(facility_joules, it_joules),
        tue=_share(facility_joules, compute_joules),
        peak_kw=sum(site.peak_watts for site in energy.sites.values()) / 1000.0,
        cap_violation_seconds=sum(energy.cap_violation_seconds.values()),
        throttle_gpu_seconds=energy.power_throttle_gpu_seconds + energy.heat_throttle_gpu_seconds,
        shutdowns=energy.shutdowns,
        preemptions=tally.preemptions,
        migrations=tally.migrations,
        sites=_sites(energy, tally, gpus_of, window),
        refused_because=dict(sorted(tally.refused.items())),
        lines_refused=setting.lines_refused,
        trips=energy.trips,
        scaling=_scaling(world, starts) if isinstance(world, SleepingWorld) else UNSET,
        feeds=_feeds(setting, world),
        egress_usd=tally.egress_usd,
        reclaims=world.reclaims,
        late=tally.late,
        power_throttle_gpu_seconds=energy.power_throttle_gpu_seconds,
        heat_throttle_gpu_seconds=energy.heat_throttle_gpu_seconds,
        begins_at=datetime.fromtimestamp(setting.begins_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        cap_violations=dict(energy.cap_violation_seconds),
        waited_for=waiting_for.job_hours,
        idle_gpu_hours=waiting_for.idle_gpu_hours,
        shares_watts=setting.policy.power_sharing.is_on,
        seed=setting.seed,
        digest=digest,
        sizes=sizes_of(tally.waited_gpus, tally.wait_seconds),
        slos={slo.name: slo for slo in slos},
    )


def _scaling(world: SleepingWorld, starts: Starts) -> ScalingReport:
    return ScalingReport(
        starts=starts.starts,
        cold_starts=starts.cold,
        hit_rate=_share(starts.starts - starts.cold, starts.starts),
        cold_start_seconds=_share(starts.cold_seconds, starts.cold),
        longest_cold_start_seconds=starts.longest_seconds,
        asleep_node_hours=world.asleep_node_seconds / SECONDS_PER_HOUR,
        wakes=world.wakes,
        failed_wakes=world.failed_wakes,
    )


def _lost(tally: Tally) -> LostGpuHours:
    losses = tally.losses
    return LostGpuHours(
        throttle=losses.throttle / SECONDS_PER_HOUR,
        restart=losses.restart / SECONDS_PER_HOUR,
        preempt=losses.preempt / SECONDS_PER_HOUR,
        pause=losses.pause / SECONDS_PER_HOUR,
    )


def _sites(
    energy: EnergyTally, tally: Tally, gpus_of: dict[str, int], window_seconds: float
) -> dict[str, SiteReport]:
    return {
        name: SiteReport(
            energy_kwh=site.facility_joules / JOULES_PER_KWH,
            cost_usd=site.usd,
            carbon_kg=site.kg_co2e,
            peak_kw=site.peak_watts / 1000.0,
            pue=_share(site.facility_joules, site.it_joules),
            tue=_share(site.facility_joules, site.compute_joules),
            utilisation=_share(tally.busy_gpu_seconds.get(name, 0.0), gpus_of[name] * window_seconds),
        )
        for name, site in energy.sites.items()
    }


def _feeds(setting: Setting, world: TwinWorld) -> dict[str, FeedReport]:
    """Nothing where no feed says what it bears."""
    limited = [
        supply
        for site in setting.facility.sites
        for supply in site.supplies
        if supply.ramp_watts_per_minute is not None or supply.swing_watts is not None
    ]
    if not limited:
        return {}
    ramps, swings = world.worst_ramps(), world.swings
    return {
        supply.name: FeedReport(
            worst_ramp_kw_per_minute=_kilo(ramps.get(supply.name)),
            ramp_kw_per_minute=_kilo(supply.ramp_watts_per_minute),
            worst_swing_kw=_kilo(swings.worst_watts.get(supply.name) if swings is not None else None),
            swing_kw=_kilo(supply.swing_watts),
        )
        for supply in limited
    }


def _kilo(watts: float | None) -> float | None:
    return None if watts is None else watts / 1000.0


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
