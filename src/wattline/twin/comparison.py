"""Which policy did better, and would it again with another seed?

Policies are compared seed by seed: both saw the same perturbed facility and the same jobs, so what a seed
makes hard for everyone cancels in the difference. Seeds are few, so the interval around the mean difference
is Student's t, not the normal one: with five seeds it is 1.4 times as wide. Differences are taken to be
roughly normal; and of twenty intervals about one excludes zero by chance, so one flag among many is a hint,
not a proof.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import reduce
from statistics import fmean, stdev
from typing import Literal

import msgspec

from wattline.errors import UsageError
from wattline.twin.report import Report

# What is compared: where it stands in a Report, and which way is better.
METRICS: dict[str, Literal["lower", "higher"]] = {
    "jobs.completed": "higher",
    "jobs.refused": "lower",
    "wait_minutes.mean": "lower",
    "wait_minutes.p95": "lower",
    "completion_minutes.mean": "lower",
    "completion_minutes.p95": "lower",
    "utilisation": "higher",
    "useful_gpu_hours": "higher",
    "lost_gpu_hours.total": "lower",
    "energy_kwh": "lower",
    "cost_usd": "lower",
    "carbon_kg": "lower",
    "peak_kw": "lower",
    "cap_violation_seconds": "lower",
    "throttle_gpu_seconds": "lower",
    "power_throttle_gpu_seconds": "lower",
    "heat_throttle_gpu_seconds": "lower",
    "shutdowns": "lower",
    "preemptions": "lower",
    "migrations": "lower",
}

# The 97.5 % quantile of Student's t by degrees of freedom; between rows, the row before, which is wider.
_T_QUANTILES = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
    11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093,
    20: 2.086, 25: 2.060, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980,
}  # fmt: skip
_T_ROWS = tuple(_T_QUANTILES)
_ROUNDING = 1e-9


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One policy in one metric; differences are against the first policy, which has none."""

    policy: str
    mean: float | None
    difference: float | None = None
    low: float | None = None  # the 95 % confidence interval of the difference; null with one seed
    high: float | None = None
    is_clear: bool | None = None  # does the interval exclude zero?


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over all policies."""

    metric: str
    better: Literal["lower", "higher"]
    standings: tuple[Standing, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Several policies on the same trace, facility and seeds."""

    trace: str
    facility: str
    truth: str
    arrival_scale: float
    begins_at: str
    seeds: tuple[int, ...]
    policies: tuple[str, ...]
    metrics: tuple[Contest, ...]
    emulated: bool = True
    not_estimated: tuple[str, ...] = ()  # metrics that some run does not know; "interval" with one seed


def compare(reports: Sequence[Report]) -> Comparison:
    """Put runs side by side; the policy named first is what the others are measured against."""
    by_policy = _by_policy_and_seed(reports)
    first = reports[0]
    seeds = tuple(sorted(next(iter(by_policy.values()))))
    contests = tuple(_contest(metric, by_policy, seeds) for metric in METRICS)
    unknown = [each.metric for each in contests if any(one.mean is None for one in each.standings)]
    return Comparison(
        trace=first.trace,
        facility=first.facility,
        truth=first.truth,
        arrival_scale=first.arrival_scale,
        begins_at=first.begins_at,
        seeds=seeds,
        policies=tuple(by_policy),
        metrics=contests,
        not_estimated=(*unknown, *(["interval"] if len(seeds) == 1 else [])),
    )


def _by_policy_and_seed(reports: Sequence[Report]) -> dict[str, dict[int, Report]]:
    """Sorted apart, and checked: a difference means something only between runs of the same thing."""
    if not reports:
        raise UsageError("there is nothing to compare", hint="replay with two policies or more")
    found: dict[str, dict[int, Report]] = {}
    for report in reports:
        for name in ("trace", "facility", "truth", "arrival_scale"):
            expected, given = getattr(reports[0], name), getattr(report, name)
            if given != expected:
                raise UsageError(f"runs differ in {name.replace('_', ' ')}: {expected} and {given}")
        runs = found.setdefault(report.policy, {})
        if report.seed in runs:
            raise UsageError(f"policy {report.policy} was run twice with seed {report.seed}")
        runs[report.seed] = report
    expected_seeds = set(next(iter(found.values())))
    for policy, runs in found.items():
        if set(runs) != expected_seeds:
            odd = ", ".join(str(seed) for seed in sorted(set(runs) ^ expected_seeds))
            raise UsageError(
                f"policy {policy} was not run with the seeds of the first policy: {odd}",
                hint="differences are taken seed by seed, so every policy needs the same seeds",
            )
    return found


def _contest(metric: str, by_policy: dict[str, dict[int, Report]], seeds: Sequence[int]) -> Contest:
    columns = {policy: [_read(runs[seed], metric) for seed in seeds] for policy, runs in by_policy.items()}
    base_policy, *others = columns
    base = columns[base_policy]
    standings = [Standing(policy=base_policy, mean=_mean(base))]
    standings += [stand_against(base, policy, columns[policy]) for policy in others]
    return Contest(metric=metric, better=METRICS[metric], standings=tuple(standings))


def _read(report: Report, metric: str) -> float | None:
    value = reduce(getattr, metric.split("."), report)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def stand_against(base: Sequence[float | None], policy: str, values: Sequence[float | None]) -> Standing:
    """One metric, seed by seed, against the same seeds of what came first."""
    pairs = zip(base, values, strict=True)
    differences = [_less(value, other) for other, value in pairs if value is not None and other is not None]
    if len(differences) < len(values):
        return Standing(policy=policy, mean=_mean(values))
    mean, difference = _mean(values), fmean(differences)
    if len(differences) == 1:
        return Standing(policy=policy, mean=mean, difference=difference)
    half = t_quantile(len(differences) - 1) * stdev(differences) / math.sqrt(len(differences))
    if half <= _ROUNDING * abs(difference):
        half = 0.0
    low, high = difference - half, difference + half
    return Standing(
        policy=policy, mean=mean, difference=difference, low=low, high=high, is_clear=low > 0 or high < 0
    )


def _less(value: float, other: float) -> float:
    """Sums of the same parts in another order differ in their last digits, which is no difference."""
    return 0.0 if math.isclose(value, other, rel_tol=_ROUNDING) else value - other


def t_quantile(degrees_of_freedom: int) -> float:
    """How many standard errors reach to either side of the mean, for 95 % between them."""
    return _T_QUANTILES[_T_ROWS[bisect_right(_T_ROWS, degrees_of_freedom) - 1]]
