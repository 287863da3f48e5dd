import pytest

from wattline.facility import CoolingKind
from wattline.physics import predict_node_supply_watts
from wattline.physics.fans import predict_fan_watts
from wattline.physics.server import predict_compute_watts


def test_without_fans_what_is_left_is_what_the_supply_was_asked_for() -> None:
    taken_in = predict_node_supply_watts(5000.0)
    assert predict_compute_watts(CoolingKind.IMMERSION, taken_in, 9000.0) == pytest.approx(5000.0)


def test_in_air_fans_take_their_part_too() -> None:
    in_air = predict_compute_watts(CoolingKind.AIR, 5000.0, 6000.0)
    without = predict_compute_watts(CoolingKind.IMMERSION, 5000.0, 6000.0)
    assert without - in_air == pytest.approx(predict_fan_watts(5000.0, 6000.0))


def test_nothing_reaches_the_chips_of_a_box_that_is_off() -> None:
    assert predict_compute_watts(CoolingKind.AIR, 0.0, 6000.0) == 0.0
