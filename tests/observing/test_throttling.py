"""Held back by power or by heat, told apart; and what is only guessed says so."""

import numpy as np
import pytest

from wattline.observing.occupancy import find_occupied, node_of_labels, strangers
from wattline.observing.series import Matrix, Meters, growth_of
from wattline.observing.throttling import device_of, find_conditions, find_held, sum_held

STEP = 60.0


def meters_of(**rows: list[list[float]]) -> Meters:
    matrices: dict[str, Matrix] = {name: np.array(values, dtype=float) for name, values in rows.items()}
    gpus = [("n1", number) for number in range(len(next(iter(matrices.values()))))]
    models = dict.fromkeys(gpus, "NVIDIA H100 80GB HBM3")
    return Meters(gpus=gpus, models=models, matrices=matrices)


def test_power_and_heat_are_told_apart_and_clocks_say_what_was_lost() -> None:
    meters = meters_of(
        power_violation_seconds=[[60, 0, 30, 0]],
        thermal_violation_seconds=[[0, 60, 30, 0]],
        clock_mhz=[[1500, 1000, 1250, 2000]],
        most_clock_mhz=[[2000] * 4],
    )
    held = find_held(meters, STEP)
    assert held is not None
    throttled = sum_held(held, gpus=1)
    assert throttled.held_by_power == pytest.approx(90 / 3600)
    assert throttled.held_by_heat == pytest.approx(90 / 3600)
    # Alone, power costs a quarter and heat a half; in the step of both they share 22.5 s one to two.
    assert throttled.lost_to_power == pytest.approx((15 + 7.5) / 3600)
    assert throttled.lost_to_heat == pytest.approx((30 + 15) / 3600)
    assert (throttled.coverage, throttled.is_estimated) == (1.0, False)


def test_without_clocks_only_the_time_is_known_and_missing_gpus_are_not_covered() -> None:
    held = find_held(meters_of(power_violation_seconds=[[60, np.nan]]), STEP)
    assert held is not None
    throttled = sum_held(held, gpus=4)
    assert throttled.held_by_power == pytest.approx(60 / 3600)
    assert throttled.lost_to_power is None
    assert throttled.coverage == pytest.approx(1 / 8)


def test_without_counters_a_low_clock_at_work_counts_and_is_said_to_be_an_estimate() -> None:
    meters = meters_of(
        busy_fraction=[[1.0, 1.0, 1.0, 0.0]],
        clock_mhz=[[990, 990, 1980, 345]],
        most_clock_mhz=[[1980] * 4],
        celsius=[[88, 60, 60, 30]],
        watts=[[400, 690, 640, 70]],
    )
    held = find_held(meters, STEP)
    assert held is not None
    throttled = sum_held(held, gpus=1)
    assert throttled.is_estimated
    assert throttled.lost_to_heat == pytest.approx(30 / 3600)
    assert throttled.lost_to_power == pytest.approx(30 / 3600)


def test_with_neither_counters_nor_clocks_nothing_is_said() -> None:
    assert find_held(meters_of(watts=[[100.0]]), STEP) is None
    assert find_held(Meters(), STEP) is None


def test_degraded_steps_are_set_beside_normal_ones() -> None:
    meters = meters_of(
        power_violation_seconds=[[0, 60, 60]],
        clock_mhz=[[2000, 1000, 345]],
        most_clock_mhz=[[2000] * 3],
        busy_fraction=[[1.0, 1.0, 0.0]],
        watts=[[600, 300, 70]],
    )
    held = find_held(meters, STEP)
    assert held is not None
    normal, degraded = find_conditions(meters, held, STEP)
    assert [normal.gpu_hours, degraded.gpu_hours] == pytest.approx([1 / 60, 1 / 60])
    assert [normal.work, degraded.work] == pytest.approx([1.0, 0.5])
    assert (normal.watts, degraded.watts) == (600, 300)


def test_a_counter_that_begins_anew_counts_from_nothing_and_a_long_gap_is_not_known() -> None:
    nan = float("nan")
    assert growth_of(np.array([5.0, 7.0, 1.0, 4.0])).tolist() == [2, 1, 3]
    assert growth_of(np.array([0.0, nan, 4.0])).tolist() == [2, 2]
    assert np.isnan(growth_of(np.array([0.0, *[nan] * 8, 4.0]))).all()


def test_idle_gpus_of_a_job_are_found_node_by_node() -> None:
    meters = meters_of(busy_fraction=[[0.9], [0.9], [0.0]], idle_fraction=[[0.0], [0.0], [1.0]])
    held = np.array([[3.0], [2.0]])  # three GPUs on n1, and two on a node that no meter tells of
    occupied = find_occupied(meters, held, ["n1", "n2"], {"n1": "n1"}, None, 3600.0)
    assert occupied.idle_gpu_hours == pytest.approx(1.0)
    assert occupied.busy_coverage == pytest.approx(3 / 5)
    assert occupied.energy_kwh is None


def test_labels_lead_to_nodes_with_or_without_a_domain_and_strangers_are_named() -> None:
    nodes = {"n1": 8, "N2.hall": 8, "n3": 8, "login": 0}
    found = node_of_labels(["n1.example.org", "n2", "elsewhere"], nodes)
    assert found == {"n1.example.org": "n1", "n2": "N2.hall"}
    gpus = [("n1.example.org", 0), ("elsewhere", 0)]
    assert strangers(gpus, {"n1.example.org": "n1"}, nodes) == ({"elsewhere"}, {"N2.hall", "n3"})


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("nvidia_a100-sxm4-40gb", "A100"),
        ("h200", "H200"),
        ("mi300x", None),
    ],
)
def test_a_model_is_known_by_what_drivers_and_gres_call_it(said: str, model: str | None) -> None:
    device = device_of(said)
    assert (device.name if device else None) == model
