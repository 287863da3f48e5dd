from __future__ import annotations

import random

import pytest

from twin.calibrate.conftest import Fitting
from twin.calibrate.synthesis import LOOP, NODE, Meters, Row, Truth, telemetry
from wattline.twin.calibrate import Fit, Outcome

TRUTH = {
    "kelvin_per_watt": 0.085,
    "die_time_constant_seconds": 38.0,
    "approach_kelvin": 8.0,
    "time_constant_seconds": 70.0,
}
TRIALS = 20


def covers(fit: Fit, truth: float) -> bool:
    return fit.interval is not None and fit.interval.low <= truth <= fit.interval.high


def without(rows: list[Row], quantity: str) -> list[Row]:
    return [row for row in rows if row[2] != quantity]


@pytest.mark.parametrize(
    "meters",
    [Meters(readings=900), Meters(every_seconds=10.0, readings=400), Meters(readings=900, celsius_noise=0.0)],
    ids=["noisy", "every ten seconds", "whole degrees without noise"],
)
def test_the_interval_covers_the_truth_and_the_estimate_is_near_it(meters: Meters, fitting: Fitting) -> None:
    found = [fitting(telemetry(seed, meters=meters)) for seed in range(TRIALS)]
    for parameter, truth in TRUTH.items():
        assert sum(covers(one[parameter], truth) for one in found) >= 0.9 * TRIALS, parameter
        intervals = [interval for one in found if (interval := one[parameter].interval) is not None]
        errors = sorted(abs(interval.estimate / truth - 1.0) for interval in intervals)
        assert errors[TRIALS // 2] < 0.03, parameter


def test_a_document_that_is_wrong_is_told_and_one_that_is_right_is_not(fitting: Fitting) -> None:
    wrong = fitting(telemetry(1))
    assert all(wrong[parameter].present_is_outside for parameter in TRUTH)
    right = Truth(kelvin_per_watt=0.1, die_seconds=45.0, approach_kelvin=10.0, loop_seconds=45.0)
    found = fitting(telemetry(1, truth=right))
    assert not any(found[parameter].present_is_outside for parameter in TRUTH)


def test_less_flow_is_taken_into_account(fitting: Fitting) -> None:
    found = fitting(telemetry(2, meters=Meters(flows=(1.0, 0.5, 0.7))))
    for parameter, truth in TRUTH.items():
        interval = found[parameter].interval
        assert interval is not None
        assert interval.estimate == pytest.approx(truth, rel=0.03), parameter


def test_gpus_of_a_model_are_joined(fitting: Fitting) -> None:
    meters = Meters(gpus=4, readings=500)
    found = fitting(telemetry(3, meters=meters))
    assert covers(found["kelvin_per_watt"], 0.085)
    assert found["kelvin_per_watt"].samples == 4 * 500


def test_constant_power_cannot_tell(fitting: Fitting) -> None:
    rows = [
        (at, subject, quantity, 300.0 + at % 3 if quantity == "gpu_watts" else value)
        for at, subject, quantity, value in telemetry(4, meters=Meters(readings=300))
    ]
    fit = fitting(rows)["kelvin_per_watt"]
    assert fit.outcome is Outcome.CANNOT_TELL
    assert fit.reason == f"GPU power of {NODE}/gpu0 never moved by more than 2 W"


def test_constant_heat_cannot_tell(fitting: Fitting) -> None:
    rows = [
        (at, subject, quantity, 3000.0 if quantity == "loop_heat_watts" else value)
        for at, subject, quantity, value in telemetry(4, meters=Meters(readings=300))
    ]
    assert "its heat never moved by more than 0 W" in fitting(rows)["approach_kelvin"].reason


def test_without_a_coolant_meter_nothing_thermal_can_be_told(fitting: Fitting) -> None:
    found = fitting(without(telemetry(5, meters=Meters(readings=300)), "coolant_celsius"))
    assert found["kelvin_per_watt"].reason == f"no coolant_celsius of loop {LOOP} was given"
    assert found["approach_kelvin"].reason == "no coolant_celsius was given"


def test_sparse_readings_tell_the_resistance_but_not_the_time_constant(fitting: Fitting) -> None:
    found = fitting(telemetry(6, meters=Meters(every_seconds=60.0, readings=500)))
    assert covers(found["kelvin_per_watt"], 0.085)
    assert found["die_time_constant_seconds"].outcome is Outcome.CANNOT_TELL
    assert "apart, too far for a time constant" in found["die_time_constant_seconds"].reason


def test_a_temperature_that_does_not_follow_its_watts_tells_nothing(fitting: Fitting) -> None:
    generator = random.Random(7)
    rows = [
        (at, subject, quantity, float(generator.randint(40, 60)) if quantity == "gpu_celsius" else value)
        for at, subject, quantity, value in telemetry(7, meters=Meters(readings=400))
    ]
    assert fitting(rows)["kelvin_per_watt"].outcome is Outcome.CANNOT_TELL


def test_order_repetition_and_gaps_do_not_matter(fitting: Fitting) -> None:
    rows = telemetry(8)
    begin, end = rows[0][0] + 1000.0, rows[0][0] + 1500.0
    gappy = [row for row in rows if not begin < row[0] < end]
    whole = fitting(gappy)
    shuffled = gappy + gappy[:500]
    random.Random(8).shuffle(shuffled)
    again = fitting(shuffled)
    assert again.calibration.telemetry.repeated == 500
    for parameter, truth in TRUTH.items():
        assert again[parameter].interval == whole[parameter].interval
        assert covers(again[parameter], truth), parameter


def test_racks_stand_in_for_a_loop_without_a_heat_meter(fitting: Fitting) -> None:
    rows = [
        (at, "r1" if quantity == "loop_heat_watts" else subject, quantity.replace("loop_heat", "rack"), value)
        for at, subject, quantity, value in telemetry(9)
    ]
    assert covers(fitting(rows)["approach_kelvin"], 8.0)
    assert fitting(without(rows, "rack_watts"))["approach_kelvin"].reason == "no loop_heat_watts was given"


def test_a_supply_that_nobody_measured_is_said_to_be_taken_as_constant(fitting: Fitting) -> None:
    found = fitting(without(telemetry(10), "supply_celsius"))
    assert found["approach_kelvin"].note.startswith("supply taken as 22 °C throughout")


@pytest.mark.parametrize(
    ("quantity", "factor", "added", "doubt"),
    [
        ("gpu_watts", 1000.0, 0.0, "milliwatts?"),
        ("gpu_watts", 0.001, 0.0, "kilowatts?"),
        ("gpu_celsius", 1.0, 273.15, "kelvin?"),
        ("coolant_celsius", 1.0, 273.15, "kelvin?"),
    ],
)
def test_a_unit_that_cannot_be_right_is_told_and_not_guessed(
    quantity: str, factor: float, added: float, doubt: str, fitting: Fitting
) -> None:
    rows = [
        (at, subject, known, factor * value + added if known == quantity else value)
        for at, subject, known, value in telemetry(11, meters=Meters(readings=200))
    ]
    found = fitting(rows)
    assert found["kelvin_per_watt"].outcome is Outcome.CANNOT_TELL
    assert doubt in found["kelvin_per_watt"].reason
    assert len(found.calibration.suspect) == 1


def test_what_the_facility_lacks_is_counted(fitting: Fitting) -> None:
    rows = [(1.0 + number, "elsewhere/gpu0", "gpu_watts", 100.0) for number in range(7)]
    found = fitting(rows)
    assert found.calibration.unknown == {"elsewhere/gpu0": 7}
    assert not found.calibration.fitted
