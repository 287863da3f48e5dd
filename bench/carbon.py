"""How much carbon does shifting work in time and place save, and how much of what could be saved?

    python -m bench.carbon [--short] [--switch-seconds 70]

Hourly direct carbon intensity of 2024 (Electricity Maps). Jobs of 1 to 24 h with 24 h of slack, width 1 or 2
at a speed of w^0.9, Poisson arrivals. Each hour the planner sees the hours that are over, and the jobs that
are there; not this hour's intensity. Five seeds, each with two windows of its own, spread over the year.
Saved is against running blind: at once, at width 1. Beside it stand the clairvoyant bound
(bench/carbon_bound.py) and a threshold policy. Saving and restarting are charged in time, capacity and carbon
at every change.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.carbon_bound import clairvoyant_grams
from bench.carbon_fleet import Outcome, Planner, Shifting, draw_jobs, run_blind, run_fleet, run_threshold
from wattline.twin.surroundings.tables import read_direct_carbon
from wattline.twin.world import USUAL_OVERHEADS

_DATA = Path(os.environ.get("WATTLINE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
ZONES = {"CISO": "US-CAL-CISO", "ERCO": "US-TEX-ERCO", "DE-LU": "DE-LU"}
LEAST_SHARE = {"CISO": 0.80, "ERCO": 0.50, "DE-LU": 0.50}  # of what the clairvoyant saves
LEAST_SAVED = {"CISO at 30 %": 0.36}
LEAST_SAVED_OF_THREE = 0.50
UTILISATIONS = (0.3, 0.5, 0.7)
# Of all three sites together: how full they are is not in the question, and decides what can be saved at all.
UTILISATIONS_OF_THREE = (0.1, 0.2, 0.25, 0.3, 0.5)
SEEDS = 5
SHORT_DAYS = 4
WINDOWS_OF_A_SEED = 2
_DAYS = 28  # long enough that how a window begins and ends, empty, matters little
_CAPACITY = 40
_FIRST_HOUR, _BETWEEN_HOURS = 700, 780
_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
_HOURS = 366 * 24


@dataclass(frozen=True, slots=True)
class Figures:
    """One seed's: shares of what running blind emitted."""

    bound: float
    saved: float
    threshold: float | None
    missed: int
    switches: float  # of a job

    @property
    def share(self) -> float:
        return self.saved / self.bound


def carbon_files() -> dict[str, Path]:
    return {zone: _DATA / "carbon" / f"emaps_2024_{name}.csv.gz" for zone, name in ZONES.items()}


def read_year(zone: str) -> list[float]:
    series, _ = read_direct_carbon(carbon_files()[zone])
    return [series.at((_YEAR + timedelta(hours=hour)).timestamp()) for hour in range(_HOURS)]


def weigh(
    series: list[list[float]], utilisation: float, seed: int, days: int, switch_seconds: float
) -> Figures:
    """All of a seed's windows together."""
    sites, switch = len(series), switch_seconds / 3600.0
    bound, total = 0.0, {"blind": Outcome(), "shifted": Outcome(), "threshold": Outcome()}
    for window in range(seed, SEEDS * WINDOWS_OF_A_SEED, SEEDS):
        start = _FIRST_HOUR + window * _BETWEEN_HOURS
        jobs = draw_jobs(seed, utilisation, _CAPACITY * sites, start, days * 24)
        planners: dict[str, Planner] = {
            "blind": run_blind(_CAPACITY, sites),
            "shifted": Shifting(_CAPACITY, switch),
        }
        if sites == 1:
            planners["threshold"] = run_threshold(_CAPACITY, switch)
        for name, planner in planners.items():
            total[name].add(run_fleet(jobs, series, _CAPACITY, switch, planner))
        bound += clairvoyant_grams(jobs, series, _CAPACITY)
    blind, shifted = total["blind"].grams, total["shifted"]
    return Figures(
        bound=1.0 - bound / blind,
        saved=1.0 - shifted.grams / blind,
        threshold=1.0 - total["threshold"].grams / blind if sites == 1 else None,
        missed=shifted.missed,
        switches=shifted.switches / shifted.jobs,
    )


def judge(name: str, zone: str, seeds: list[Figures]) -> bool:
    """Print a row; whether all its bars are met."""
    bound, saved = (sum(getattr(seed, what) for seed in seeds) / len(seeds) for what in ("bound", "saved"))
    worst = min(seed.saved for seed in seeds)
    simple = [seed.threshold for seed in seeds if seed.threshold is not None]
    threshold = f"{sum(simple) / len(simple):7.1%}" if simple else "      –"
    missed = sum(seed.missed for seed in seeds)
    bars = {"none missed": missed == 0, "never worse than blind": worst >= 0.0}
    if zone in LEAST_SHARE:
        least = LEAST_SHARE[zone]
        bars[f"≥ {least:.0%} of the bound"] = saved / bound >= least
    least_saved = LEAST_SAVED.get(name) if zone else LEAST_SAVED_OF_THREE
    if least_saved is not None:
        bars[f"≥ {least_saved:.0%} saved"] = saved >= least_saved
    told = ", ".join(f"{bar}: {'met' if met else 'MISSED'}" for bar, met in bars.items())
    print(
        f"{name:22} {bound:7.1%} {saved:7.1%} {saved / bound:7.1%} {worst:7.1%} {threshold}"
        f" {sum(seed.switches for seed in seeds) / len(seeds):7.2f}   {told}",
        flush=True,
    )
    return all(bars.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one row, two seeds, windows of four days")
    usual = USUAL_OVERHEADS.save + USUAL_OVERHEADS.restart
    parser.add_argument("--switch-seconds", type=float, default=usual)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    args = parser.parse_args()
    seeds = 2 if args.short else SEEDS
    rows: list[tuple[str, tuple[str, ...], float]] = [
        (f"{zone} at {used:.0%}".replace("%", " %"), (zone,), used) for zone in ZONES for used in UTILISATIONS
    ]
    rows = (
        rows[:1]
        if args.short
        else [
            *rows,
            *[
                (f"three zones at {used:.0%}".replace("%", " %"), tuple(ZONES), used)
                for used in UTILISATIONS_OF_THREE
            ],
        ]
    )
    print(f"{'':22} {'bound':>7} {'saved':>7} {'share':>7} {'worst':>7} {'thresh.':>7} {'changes':>7}")
    good = True
    only: str = args.only
    for name, zones, used in rows:
        if only not in name:
            continue
        series = [read_year(zone) for zone in zones]
        days = SHORT_DAYS if args.short else _DAYS
        found = [weigh(series, used, seed, days, args.switch_seconds) for seed in range(seeds)]
        good = judge(name, zones[0] if len(zones) == 1 else "", found) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
