import pytest

from wattline.physics.recirculation import predict_recirculation_kelvin


def test_two_busy_neighbours_warm_the_air_between_them_by_a_few_kelvin() -> None:
    assert predict_recirculation_kelvin(2 * 10_000.0) == pytest.approx(3.0)


def test_neighbours_that_are_off_cool_nothing() -> None:
    assert predict_recirculation_kelvin(-5000.0) == 0.0
