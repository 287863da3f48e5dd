from __future__ import annotations

import numpy as np
import pytest

from wattline.twin.calibrate.intervals import Estimate, join, repetition, resample, student


@pytest.mark.parametrize(
    ("freedom", "width"), [(1, 12.706), (4.9, 2.776), (10, 2.228), (30, 2.042), (1e6, 1.960)]
)
def test_students_widths_are_those_of_the_tables(freedom: float, width: float) -> None:
    assert student(freedom) == pytest.approx(width, abs=0.002)


def test_widths_only_shrink_as_more_is_known() -> None:
    widths = [student(freedom) for freedom in np.linspace(1, 40, 100)]
    assert widths == sorted(widths, reverse=True)


def test_white_noise_does_not_repeat_itself_and_a_walk_does() -> None:
    generator = np.random.default_rng(3)
    noise = generator.normal(size=4000)
    assert repetition(noise) < 1.3
    assert repetition(np.repeat(noise[:400], 10)) == pytest.approx(10.0, rel=0.25)


def test_what_never_changes_has_nothing_to_repeat() -> None:
    assert repetition(np.zeros(100)) == 1.0


def test_blocks_give_the_error_of_a_mean_and_the_same_one_every_time() -> None:
    values = np.random.default_rng(4).normal(100.0, 10.0, 4000)
    found = resample(values, lambda drawn: float(drawn.mean()))
    assert found.error == pytest.approx(10.0 / np.sqrt(4000), rel=0.5)
    assert found == resample(values, lambda drawn: float(drawn.mean()))


def test_devices_that_agree_make_the_interval_narrower() -> None:
    one = Estimate(value=0.1, error=0.002, freedom=50)
    alone, together = join([one]), join([one] * 4)
    assert together.estimate == pytest.approx(0.1)
    assert (together.high - together.low) < 0.6 * (alone.high - alone.low)


def test_devices_that_differ_more_than_their_errors_make_it_wider() -> None:
    unlike = [Estimate(value=value, error=1e-4, freedom=50) for value in (0.09, 0.1, 0.11)]
    found = join(unlike)
    assert found.low < 0.09
    assert found.high > 0.11


def test_the_mean_of_a_model_is_covered_although_its_chips_differ() -> None:
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        chips = 0.1 * np.exp(generator.normal(0.0, 0.03, 8))
        read = chips * np.exp(generator.normal(0.0, 0.01, 8))
        found = join([Estimate(value=value, error=0.01 * value, freedom=50) for value in read.tolist()])
        covered += found.low <= 0.1 <= found.high
    assert covered >= 180
