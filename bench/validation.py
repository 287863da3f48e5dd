"""How far is the twin from what was measured, published, or known?

    python -m bench.validation

Prints the figures of docs/validation.md, in about two minutes. The public data sets are no part of this
repository: they are looked for in `shared/data` beside it, or where WATTLINE_SHARED_DATA says.
"""

from __future__ import annotations

import csv
import gzip
import os
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from pathlib import Path

from bench.heat_checks import print_limits, print_pump_trip, print_step
from bench.loop_checks import print_identity, print_relations, print_tiresias
from wattline.facility import DEVICES
from wattline.physics.cap_curve import CapCurve, CapPoint, device_cap_curve, fit_cap_curve
from wattline.physics.fans import predict_fan_watts
from wattline.physics.hydraulics import (
    GB300_NVL72_CURVE,
    PASCALS_PER_PSI,
    PG25,
    WATER,
    Fluid,
    fit_pressure_curve,
    predict_flow_litres_per_minute,
    predict_pressure_drop_pascals,
    predict_pump_watts,
)
from wattline.physics.utilisation import A100_DRAW, DrawCurve, fit_draw_curve, predict_share_below

_DATA = Path(os.environ.get("WATTLINE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
# A run whose cap is this far above its draw is one more measurement of its speed without a cap.
_CLEAR_OF_THE_CAP = 1.25


def read_rows(name: str) -> list[dict[str, str]]:
    path = _DATA / name
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def read_cap_points(device: str, clear_of_the_cap: float) -> dict[str, list[CapPoint]]:
    """By network: every configuration under every cap below the limit, relative to its speed without one."""
    runs: dict[tuple[str, ...], dict[float, tuple[float, float]]] = defaultdict(dict)
    for row in read_rows(f"gpu_power/zeus_summary_power_{device}.csv"):
        key = (row["network"], row["dataset"], row["batch_size"], row["optimizer"])
        runs[key][float(row["power_limit"])] = (float(row["time_per_epoch"]), float(row["average_power"]))
    points: dict[str, list[CapPoint]] = defaultdict(list)
    for (network, *_), by_cap in sorted(runs.items()):
        limit = max(by_cap)
        draw = by_cap[limit][1]
        clear = [by_cap[cap][0] for cap in by_cap if cap == limit or cap >= clear_of_the_cap * draw]
        full = statistics.median(clear)
        points[network] += [
            CapPoint(cap_watts=cap, uncapped_watts=draw, speed=full / seconds)
            for cap, (seconds, _) in by_cap.items()
            if cap < limit
        ]
    return points


def errors_of(curve: CapCurve, points: list[CapPoint]) -> list[tuple[float, float]]:
    """How far off each point is, in percent of the speed without a cap and of the measured one."""
    missed = [(abs(curve.predict(p.cap_watts, p.uncapped_watts) - p.speed), p.speed) for p in points]
    return [(100 * error, 100 * error / speed) for error, speed in missed]


def print_caps(device: str) -> None:
    points = read_cap_points(device, _CLEAR_OF_THE_CAP)
    against_one_run = read_cap_points(device, float("inf"))
    print(f"\n1. power cap curve, {device}: each network predicted by a fit over the others")
    print(f"{'held out':<18} {'points':>6} {'error %':>8} {'of itself %':>12} {'one run %':>10}   fitted")
    rows: list[tuple[float, float]] = []
    single: list[tuple[float, float]] = []
    for network in points:
        curve = fit_cap_curve([point for other in points if other != network for point in points[other]])
        errors = errors_of(curve, points[network])
        errors_against_one = errors_of(curve, against_one_run[network])
        rows += errors
        single += errors_against_one
        print_cap_row(network, errors, errors_against_one, curve)
    everything = fit_cap_curve([point for some in points.values() for point in some])
    print_cap_row("all, pooled", rows, single, everything)
    print_cliff(points, everything)
    print_as_it_runs(points)


def print_as_it_runs(points: dict[str, list[CapPoint]]) -> None:
    """What the twin gives: a V100's curve, also to a device that the curve has not seen."""
    curve = device_cap_curve(DEVICES["V100"].idle_watts)
    every = [point for some in points.values() for point in some]
    missed = [error for error, _ in errors_of(curve, every)]
    print(f"as the twin runs it: {statistics.mean(missed):.2f} %, all points")
    print_cliff(points, curve)


def print_cap_row(
    name: str, errors: list[tuple[float, float]], against_one_run: list[tuple[float, float]], curve: CapCurve
) -> None:
    mean, relative = (statistics.mean(column) for column in zip(*errors, strict=True))
    one = statistics.mean(error for error, _ in against_one_run)
    fitted = f"static {curve.static_watts:.1f} W, exponent {curve.exponent:.2f}, knee {curve.knee:.3f}"
    print(f"{name:<18} {len(errors):>6} {mean:>8.2f} {relative:>12.2f} {one:>10.2f}   {fitted}")


def print_cliff(points: dict[str, list[CapPoint]], curve: CapCurve) -> None:
    """Networks that want more than 200 W, on average: the speed left at each cap."""
    hungry = [point for some in points.values() for point in some if point.uncapped_watts > 200.0]
    by_cap = {cap: [p for p in hungry if p.cap_watts == cap] for cap in sorted({p.cap_watts for p in hungry})}
    measured = [statistics.mean(p.speed for p in some) for some in by_cap.values()]
    predicted = [
        statistics.mean(curve.predict(cap, p.uncapped_watts) for p in some) for cap, some in by_cap.items()
    ]
    print("cap W      " + " ".join(f"{cap:>6.0f}" for cap in by_cap))
    print("measured   " + " ".join(f"{speed:>6.3f}" for speed in measured))
    print("predicted  " + " ".join(f"{speed:>6.3f}" for speed in predicted))


def print_hydraulics() -> None:
    published = [
        (float(row["supply_c"]), float(row["required_rack_flow_lpm"]), float(row["rack_pressure_drop_psi"]))
        for row in read_rows("gpu_power/lenovo_gb300_nvl72_flow_table.csv")
    ]
    (cold, cold_flow, cold_drop), (warm, warm_flow, warm_drop) = published[0], published[-1]
    return_celsius = (cold * cold_flow - warm * warm_flow) / (cold_flow - warm_flow)
    heat_watts = cold_flow / predict_flow_litres_per_minute(1.0, cold, return_celsius)
    ends = [(cold_flow, cold_drop * PASCALS_PER_PSI), (warm_flow, warm_drop * PASCALS_PER_PSI)]
    curve = fit_pressure_curve(ends)
    print("\n2. hydraulics, GB300 rack in water: fitted on the first and the last point")
    print(f"heat {heat_watts / 1000:.1f} kW, return {return_celsius:.1f} °C, exponent {curve.exponent:.3f}")
    print(
        f"{'supply °C':>9} {'L/min':>6} {'fit':>6} {'off %':>6} {'psi':>6} {'fit':>6} {'off %':>6}  held out"
    )
    for supply, flow, drop in published:
        fitted_flow = predict_flow_litres_per_minute(heat_watts, supply, return_celsius)
        fitted_drop = predict_pressure_drop_pascals(curve, fitted_flow) / PASCALS_PER_PSI
        off_flow, off_drop = 100 * (fitted_flow / flow - 1), 100 * (fitted_drop / drop - 1)
        held_out = "no" if supply in (cold, warm) else "yes"
        print(
            f"{supply:>9.0f} {flow:>6.0f} {fitted_flow:>6.1f} {off_flow:>6.1f}"
            f" {drop:>6.1f} {fitted_drop:>6.2f} {off_drop:>6.1f}  {held_out}"
        )
    print("121.5 kW returned at 54.8 °C: L/min, psi, pump W")
    for fluid in (WATER, PG25):
        print(f"{fluid.name:>9}  " + "; ".join(describe_pumping(supply, fluid) for supply, *_ in published))


def describe_pumping(supply_celsius: float, fluid: Fluid) -> str:
    flow = predict_flow_litres_per_minute(121_500.0, supply_celsius, 54.8, fluid)
    pascals = predict_pressure_drop_pascals(GB300_NVL72_CURVE, flow, fluid)
    return f"{flow:.0f}, {pascals / PASCALS_PER_PSI:.1f}, {predict_pump_watts(pascals, flow):.0f}"


def read_series() -> dict[str, list[float]]:
    """Every series as a thousand equally likely values, in order."""
    series: dict[str, list[float]] = defaultdict(list)
    for row in read_rows("telemetry/acme_cdfs_aug2023.csv.gz"):
        series[row["series"]].append(float(row["value"]))
    return {name: sorted(values) for name, values in series.items()}


def duties_of(percents: list[float]) -> dict[float, float]:
    return {percent / 100: count / len(percents) for percent, count in Counter(percents).items()}


def distance(curve: DrawCurve, duties: dict[float, float], watts: list[float]) -> float:
    """Kolmogorov and Smirnov's, between the curve's distribution and the measured one."""
    most = 0.0
    for rank, value in enumerate(watts):
        share = predict_share_below(curve, duties, value)
        most = max(most, abs(share - rank / len(watts)), abs(share - (rank + 1) / len(watts)))
    return most


def distance_between(one: list[float], other: list[float]) -> float:
    """The same, between two samples."""
    differences = (
        bisect_right(one, value) / len(one) - bisect_right(other, value) / len(other) for value in one + other
    )
    return max(map(abs, differences))


def carry_over(here: list[float], watts_here: list[float], there: list[float]) -> list[float]:
    """Watts there, if the best rising curve here held: the same rank of utilisation has the same watts."""
    carried = []
    for index, value in enumerate(there):
        low, high = bisect_left(here, value), bisect_right(here, value)
        first, last = bisect_left(there, value), bisect_right(there, value)
        rank = low + (high - low) * (index - first + 0.5) / (last - first)
        carried.append(watts_here[min(int(rank), len(watts_here) - 1)])
    return sorted(carried)


def quantile(curve: DrawCurve, duties: dict[float, float], share: float) -> float:
    low, high = 0.0, 1000.0
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if predict_share_below(curve, duties, middle) < share else (low, middle)
    return high


def print_utilisation() -> None:
    series = read_series()
    watts = {cluster: series[f"{cluster}_gpu_power"] for cluster in ("seren", "kalos")}
    duties = {cluster: duties_of(series[f"{cluster}_gpu_util_metric0"]) for cluster in watts}
    print("\n6. GPU watts from utilisation: predicted / measured")
    print("fitted on  tested on      KS       p50 W       p99 W       to 65 W        >400 W")
    other_way = fit_draw_curve(duties["kalos"], watts["kalos"], A100_DRAW.limit_watts)
    for fitted_on, curve in (("seren", A100_DRAW), ("kalos", other_way)):
        for tested_on, there in watts.items():
            row = describe_draw(curve, duties[tested_on], there)
            print(f"{fitted_on:<10} {tested_on:<10} {row}")
    anew = fit_draw_curve(duties["seren"], watts["seren"], A100_DRAW.limit_watts)
    print(f"seren, fitted anew: {anew}")
    print("for comparison, KS to kalos of")
    print(f"  {distance_between(watts['seren'], watts['kalos']):.3f}  seren's watts as they are")
    for metric in ("gpu_util_metric0", "gpu_util_metric2"):
        carried = carry_over(series[f"seren_{metric}"], watts["seren"], series[f"kalos_{metric}"])
        apart = distance_between(carried, watts["kalos"])
        print(f"  {apart:.3f}  the rising curve of {metric} that is exact on seren")


def describe_draw(curve: DrawCurve, duties: dict[float, float], watts: list[float]) -> str:
    pairs = [
        (quantile(curve, duties, share), watts[round(share * (len(watts) - 1))]) for share in (0.5, 0.99)
    ]
    to_65 = predict_share_below(curve, duties, 65.0), bisect_right(watts, 65.0) / len(watts)
    above = 1.0 - predict_share_below(curve, duties, 400.0), 1.0 - bisect_right(watts, 400.0) / len(watts)
    text = [f"{predicted:>5.0f}/{measured:>5.0f}" for predicted, measured in pairs]
    text += [f"{predicted:>6.3f}/{measured:>6.3f}" for predicted, measured in (to_65, above)]
    return f"{distance(curve, duties, watts):>6.3f} " + " ".join(text)


def print_fans() -> None:
    print("\nfans")
    print(" server W   fan W    line  share %   line")
    for row in read_rows("gpu_power/azure_server_fan_power.csv"):
        server, fan = float(row["server power"]), float(row["fan power"])
        line = predict_fan_watts(server)
        print(
            f"{server:>9.0f} {fan:>7.1f} {line:>7.1f} {100 * fan / server:>8.1f} {100 * line / server:>6.1f}"
        )


def first_arrival(number: int) -> float:
    """Traces are read from their first arrival on; the artifact's rounds count from before it."""
    return min(float(row["time"]) for row in read_rows(f"jobs/pollux-workload-{number}.csv.gz"))


def main() -> None:
    for device in ("v100", "rtx6000"):
        print_caps(device)
    print_hydraulics()
    print_step()
    print_limits()
    print_pump_trip()
    print_utilisation()
    print_relations()
    print_tiresias(_DATA / "jobs", {number: first_arrival(number) for number in range(1, 7)})
    print_identity()
    print_fans()


if __name__ == "__main__":
    main()
