"""Network: guarantees hold, nothing is wasted, and nobody gets more than they ask."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.facility import TrafficClass
from wattline.physics import share_fairly, share_link, transfer_seconds

GUARANTEED = {
    TrafficClass.CONTROL: 0.05,
    TrafficClass.TRAINING: 0.5,
    TrafficClass.CHECKPOINT: 0.25,
    TrafficClass.ARTIFACT: 0.2,
}
demands = st.dictionaries(st.sampled_from(TrafficClass), st.floats(0, 1e11), max_size=4)


def test_what_small_demands_leave_is_shared_alike() -> None:
    assert share_fairly(10.0, [1.0, 8.0, 8.0]) == pytest.approx([1.0, 4.5, 4.5])


def test_control_is_never_starved_by_checkpoints() -> None:
    shares = share_link(10e9, GUARANTEED, {TrafficClass.CONTROL: 1e8, TrafficClass.CHECKPOINT: 1e12})
    assert shares[TrafficClass.CONTROL] == pytest.approx(1e8)
    assert shares[TrafficClass.CHECKPOINT] == pytest.approx(9.9e9)


@given(st.floats(0, 1e11), demands)
def test_a_link_is_never_overfull_nor_idle_while_someone_waits(
    bits_per_second: float, wanted: dict[TrafficClass, float]
) -> None:
    shares = share_link(bits_per_second, GUARANTEED, wanted)
    assert sum(shares.values()) == pytest.approx(min(bits_per_second, sum(wanted.values())), abs=1e-3)
    for traffic, share in shares.items():
        assert share <= wanted[traffic] + 1e-3
        assert share >= min(wanted[traffic], GUARANTEED[traffic] * bits_per_second) - 1e-3


def test_a_transfer_takes_its_latency_and_eight_bits_a_byte() -> None:
    assert transfer_seconds(1e9, 8e9, 0.02) == pytest.approx(1.02)
    assert transfer_seconds(0.0, 0.0, 0.02) == 0.02
    assert transfer_seconds(1.0, 0.0, 0.02) == math.inf
