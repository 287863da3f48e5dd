"""Cap curve: networks that were held out are predicted, and the cliff is where it was measured."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import shared_data
from wattline.facility import DEVICES
from wattline.physics.cap_curve import (
    RTX6000_CAP_CURVE,
    V100_CAP_CURVE,
    V100_DRAW_CURVE,
    CapCurve,
    CapPoint,
    OwnCurve,
    device_cap_curve,
    fit_cap_curve,
    fit_draw_curve,
)

CURVES = {"v100": V100_CAP_CURVE, "rtx6000": RTX6000_CAP_CURVE}
NETWORKS = ("bert_base_uncased", "deepspeech2", "ncf", "resnet50", "shufflenetv2")
# A run whose cap is this far above its draw is one more measurement of its speed without a cap.
CLEAR_OF_THE_CAP = 1.25

curves = st.builds(
    CapCurve, static_watts=st.floats(10.0, 90.0), exponent=st.floats(1.0, 6.0), knee=st.floats(0.1, 0.9)
)
draws = st.floats(30.0, 300.0)
caps = st.floats(50.0, 300.0)


@cache
def read_points(device: str) -> dict[str, list[CapPoint]]:
    """Speeds of every configuration under every cap below the device's limit, by network."""
    runs: dict[tuple[str, ...], dict[float, tuple[float, float]]] = defaultdict(dict)
    path = shared_data(f"gpu_power/zeus_summary_power_{device}.csv")
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            key = (row["network"], row["dataset"], row["batch_size"], row["optimizer"])
            runs[key][float(row["power_limit"])] = (float(row["time_per_epoch"]), float(row["average_power"]))
    points: dict[str, list[CapPoint]] = defaultdict(list)
    for (network, *_), by_cap in runs.items():
        limit = max(by_cap)
        draw = by_cap[limit][1]
        clear = [by_cap[cap][0] for cap in by_cap if cap == limit or cap >= CLEAR_OF_THE_CAP * draw]
        full = statistics.median(clear)
        points[network] += [
            CapPoint(cap_watts=cap, uncapped_watts=draw, speed=full / seconds)
            for cap, (seconds, _) in by_cap.items()
            if cap < limit
        ]
    return points


@pytest.mark.parametrize("device", CURVES)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_that_was_held_out_is_predicted_within_five_percent(device: str, network: str) -> None:
    points = read_points(device)
    curve = fit_cap_curve([point for other in NETWORKS if other != network for point in points[other]])
    errors = [abs(curve.predict(p.cap_watts, p.uncapped_watts) - p.speed) for p in points[network]]
    assert statistics.mean(errors) <= 0.05


@pytest.mark.parametrize("device", CURVES)
def test_the_curve_in_the_code_is_the_fit_over_all_networks(device: str) -> None:
    fitted = fit_cap_curve([point for some in read_points(device).values() for point in some])
    stated = CURVES[device]
    assert stated.static_watts == pytest.approx(fitted.static_watts, abs=0.1)
    assert stated.exponent == pytest.approx(fitted.exponent, abs=0.02)
    assert stated.knee == pytest.approx(fitted.knee, abs=0.005)


@pytest.mark.parametrize("device", CURVES)
def test_the_last_watts_cost_as_much_more_as_they_did_when_measured(device: str) -> None:
    hungry = [p for some in read_points(device).values() for p in some if p.uncapped_watts > 200.0]

    def falls(cap_watts: float, curve: CapCurve | None) -> float:
        """Speed lost over the 25 W below this cap."""

        def mean_speed(at_watts: float) -> float:
            there = [p for p in hungry if p.cap_watts == at_watts]
            speeds = [curve.predict(at_watts, p.uncapped_watts) if curve else p.speed for p in there]
            return statistics.mean(speeds)

        return mean_speed(cap_watts) - mean_speed(cap_watts - 25.0)

    cliff, slope = falls(125.0, None), falls(200.0, None)
    assert cliff > 3.0 * slope
    assert falls(125.0, CURVES[device]) > 3.0 * falls(200.0, CURVES[device])
    assert falls(125.0, CURVES[device]) == pytest.approx(cliff, rel=0.35)


@given(curves, caps, draws)
def test_a_network_that_draws_no_more_than_the_cap_is_not_slowed(
    curve: CapCurve, cap_watts: float, draw_watts: float
) -> None:
    speed = curve.predict(cap_watts, draw_watts)
    assert speed == 1.0 if draw_watts <= cap_watts else 0.0 <= speed <= 1.0


@given(curves, caps, caps, draws)
def test_a_looser_cap_never_slows(curve: CapCurve, one: float, other: float, draw_watts: float) -> None:
    tight, loose = sorted((one, other))
    assert curve.predict(tight, draw_watts) <= curve.predict(loose, draw_watts) + 1e-12


@given(curves, caps, draws, draws)
def test_under_one_cap_a_hungrier_network_is_slowed_no_less(
    curve: CapCurve, cap_watts: float, one: float, other: float
) -> None:
    modest, hungry = sorted((one, other))
    assert curve.predict(cap_watts, hungry) <= curve.predict(cap_watts, modest) + 1e-12


def test_a_fit_finds_the_curve_that_its_points_came_from() -> None:
    curve = CapCurve(static_watts=40.0, exponent=3.0, knee=0.4)
    points = [
        CapPoint(cap_watts=cap, uncapped_watts=draw, speed=curve.predict(cap, draw))
        for cap in (75.0, 100.0, 150.0, 200.0)
        for draw in (40.0, 180.0, 250.0)
    ]
    fitted = fit_cap_curve(points)
    assert (fitted.static_watts, fitted.exponent, fitted.knee) == pytest.approx((40.0, 3.0, 0.4), rel=1e-3)


def test_a_device_that_was_not_measured_keeps_its_own_idle_draw() -> None:
    curve = device_cap_curve(DEVICES["H100"].idle_watts)
    assert curve.static_watts == DEVICES["H100"].idle_watts
    assert curve.predict(700.0, 700.0) == 1.0
    assert 0.0 < curve.predict(200.0, 700.0) < curve.predict(500.0, 700.0) < 1.0


def draw_points(device: str, limit_watts: float) -> dict[str, list[CapPoint]]:
    """By network, of configurations that use a device in earnest."""
    runs: dict[tuple[str, ...], dict[float, tuple[float, float]]] = defaultdict(dict)
    with shared_data(f"gpu_power/zeus_summary_power_{device}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            key = (row["network"], row["dataset"], row["batch_size"], row["optimizer"])
            runs[key][float(row["power_limit"])] = (float(row["time_per_epoch"]), float(row["average_power"]))
    points: dict[str, list[CapPoint]] = defaultdict(list)
    for (network, *_), by_cap in runs.items():
        full_seconds, full_watts = by_cap[limit_watts]
        if full_watts >= 0.4 * limit_watts:
            points[network] += [
                CapPoint(
                    cap_watts=cap, uncapped_watts=full_watts, speed=full_seconds / seconds, drawn_watts=drawn
                )
                for cap, (seconds, drawn) in by_cap.items()
            ]
    return points


def test_the_draw_curve_is_the_fit_of_what_was_measured() -> None:
    points = [point for network in draw_points("v100", 250.0).values() for point in network]
    fitted = fit_draw_curve(points, 250.0)
    for name in ("taken", "lost", "exponent", "hunger"):
        assert getattr(fitted, name) == pytest.approx(getattr(V100_DRAW_CURVE, name), abs=0.002)


@pytest.mark.parametrize("network", ["bert_base_uncased", "deepspeech2", "resnet50", "shufflenetv2"])
def test_the_draw_of_a_network_that_was_left_out_is_predicted_from_one_reading(network: str) -> None:
    by_network = draw_points("v100", 250.0)
    others = [point for name, points in by_network.items() if name != network for point in points]
    curve = fit_draw_curve(others, 250.0)
    errors, slips = [], []
    for point in by_network[network]:
        assert point.drawn_watts is not None
        fraction = point.cap_watts / 250.0
        errors.append(abs(curve.predict_watts(250.0, fraction, point.uncapped_watts) - point.drawn_watts))
        speed = curve.predict_speed(250.0, point.drawn_watts, point.uncapped_watts)
        slips.append(abs(speed - point.speed))
    assert statistics.mean(errors) <= 10.0
    assert statistics.mean(slips) <= 0.05


@given(st.floats(0.4, 1.0), st.floats(60.0, 250.0))
def test_what_is_read_under_a_cap_says_what_would_be_drawn_without(fraction: float, watts: float) -> None:
    drawn = V100_DRAW_CURVE.predict_watts(250.0, fraction, watts)
    inferred = V100_DRAW_CURVE.infer_uncapped_watts(fraction, drawn)
    assert inferred <= watts + 1e-9
    if drawn < fraction * 250.0:
        assert inferred == pytest.approx(watts)


@given(st.floats(60.0, 250.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_more_watts_never_make_a_network_slower(uncapped: float, one: float, other: float) -> None:
    less, more = sorted((one, other))
    slower = V100_DRAW_CURVE.predict_speed(250.0, less * uncapped, uncapped)
    assert 0.0 <= slower <= V100_DRAW_CURVE.predict_speed(250.0, more * uncapped, uncapped) <= 1.0


def test_a_network_of_its_own_runs_as_it_was_measured_and_on_lines_in_between() -> None:
    curve = OwnCurve(cap_fractions=(0.4, 0.6, 1.0), watts=(90.0, 130.0, 190.0), speeds=(0.6, 0.9, 1.0))
    assert [curve.predict_watts(cap) for cap in (0.2, 0.4, 0.5, 1.0)] == [
        90.0,
        90.0,
        pytest.approx(110.0),
        190.0,
    ]
    assert [curve.predict_speed(cap) for cap in (0.4, 0.8, 1.0)] == [0.6, pytest.approx(0.95), 1.0]
