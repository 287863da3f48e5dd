"""What did a replay come to? The figures of one run of the twin, as programs read them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from wattline.control import Standing


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs of a trace. `unfinished` ran or waited when the replay ended."""

    submitted: int
    completed: int
    refused: int
    unfinished: int


class Minutes(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took: all null where nothing did."""

    mean: float | None
    p50: float | None
    p95: float | None

    @staticmethod
    def of_seconds(seconds: Sequence[float]) -> Minutes:
        if len(seconds) == 0:
            return Minutes(mean=None, p50=None, p95=None)
        minutes = np.asarray(seconds, dtype=float) / 60.0
        p50, p95 = np.percentile(minutes, (50, 95))
        return Minutes(mean=float(minutes.mean()), p50=float(p50), p95=float(p95))


class SizeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What jobs of about one size waited: a mean over all of them is a mean of the small ones."""

    started: int
    wait_minutes: Minutes


# The fewest GPUs of each size, and what it is called.
SIZES = ((0, "no GPU"), (1, "1 GPU"), (2, "2-7 GPUs"), (8, "8-63 GPUs"), (64, "64+ GPUs"))


def sizes_of(gpus: Sequence[int], wait_seconds: Sequence[float]) -> dict[str, SizeReport]:
    """By size, of those that came: how many GPUs each job asked for, and how long it waited."""
    waits, bounds = np.asarray(wait_seconds, dtype=float), [least for least, _ in SIZES]
    size = np.searchsorted(bounds, np.asarray(gpus, dtype=int), side="right") - 1
    by_size = {name: waits[size == number] for number, (_, name) in enumerate(SIZES)}
    return {
        name: SizeReport(started=len(seconds), wait_minutes=Minutes.of_seconds(seconds.tolist()))
        for name, seconds in by_size.items()
        if len(seconds)
    }


class LostGpuHours(msgspec.Struct, frozen=True, kw_only=True):
    """GPU-hours that were held and brought no job forward, by why."""

    throttle: float
    restart: float
    preempt: float
    pause: float

    @property
    def total(self) -> float:
        return self.throttle + self.restart + self.preempt + self.pause


class SiteReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one site took."""

    energy_kwh: float
    cost_usd: float | None
    carbon_kg: float | None
    peak_kw: float
    pue: float | None
    tue: float | None
    utilisation: float | None


class ScalingReport(msgspec.Struct, frozen=True, kw_only=True):
    """What sleeping came to: who found nodes awake, and what the others waited for them."""

    starts: int  # of jobs with GPUs, where nodes can sleep
    cold_starts: int  # of these, of jobs that waited for a node to wake
    hit_rate: float | None  # the share of the others
    cold_start_seconds: float | None  # waited for waking, on average of the cold ones
    longest_cold_start_seconds: float
    asleep_node_hours: float
    wakes: int
    failed_wakes: int


class FeedReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a supply with a ramp, or one that minds swings, saw at worst, beside what it bears."""

    worst_ramp_kw_per_minute: float | None = None
    ramp_kw_per_minute: float | None = None
    worst_swing_kw: float | None = None
    swing_kw: float | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One replay. `not_estimated` is never given: it names whatever is null, however deep."""

    trace: str
    facility: str
    policy: str
    truth: Literal["perturbed", "exact"]  # may the facility differ from what its document says?
    arrival_scale: float
    jobs: JobCounts
    gpus: int
    simulated_hours: float
    wall_seconds: float
    cpu_seconds: float
    jobs_per_cpu_second: float | None
    wait_minutes: Minutes
    completion_minutes: Minutes
    useful_gpu_hours: float
    lost_gpu_hours: LostGpuHours
    utilisation: float | None
    energy_kwh: float
    cost_usd: float | None
    carbon_kg: float | None
    pue: float | None
    tue: float | None
    peak_kw: float
    cap_violation_seconds: float  # of all racks and supplies, added up
    throttle_gpu_seconds: float  # of all GPUs, added up
    shutdowns: int
    preemptions: int
    migrations: int
    sites: dict[str, SiteReport]
    refused_because: dict[str, int] = {}  # a rule → how many jobs it refused
    lines_refused: int = 0  # rows of the trace that could not be read as jobs
    trips: int = 0  # breakers that opened
    scaling: ScalingReport | msgspec.UnsetType = msgspec.UNSET  # only where the policy scales
    feeds: dict[str, FeedReport] = {}  # those that have a ramp or mind swings
    egress_usd: float = 0.0  # what data cost that left sites
    reclaims: int = 0  # machines of clouds that were taken back
    late: int = 0  # jobs that completed after their deadline
    sizes: dict[str, SizeReport] = {}  # by how many GPUs jobs asked for
    power_throttle_gpu_seconds: float = 0.0  # of these, slowed by a cap, whoever set it
    heat_throttle_gpu_seconds: float = 0.0  # of these, slowed by heat
    begins_at: str = ""  # in the twin: what weather, prices and carbon are those of
    cap_violations: dict[str, float] = {}  # a rack or supply → seconds above what it may draw
    waited_for: dict[str, float] = {}  # a rule → job-hours that it kept waiting, the most first
    idle_gpu_hours: float = 0.0  # of GPUs in halls that nobody held while some job waited
    shares_watts: bool = False  # whether jobs count for what is read of them, not for the most they may draw
    slos: dict[str, Standing] = {}  # those that were asked about, as they stand at the end
    seed: int
    digest: str
    emulated: bool = True
    not_estimated: tuple[str, ...] = ()

    @property
    def energy_usd(self) -> float | None:
        """What the sites paid for energy; the rest of the cost is that of GPUs by the hour."""
        known = [site.cost_usd for site in self.sites.values() if site.cost_usd is not None]
        return sum(known) if self.cost_usd is not None and len(known) == len(self.sites) else None

    def __post_init__(self) -> None:
        figures = msgspec.to_builtins(self)
        msgspec.structs.force_setattr(self, "not_estimated", tuple(sorted(_nulls(figures, ""))))


def _nulls(value: Any, path: str) -> Iterator[str]:
    """Where JSON will say null: what is None, and what is not a finite number."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _nulls(inner, f"{path}.{name}" if path else str(name))
    elif value is None or (isinstance(value, float) and not math.isfinite(value)):
        yield path
