"""Capacity costs something in the hours that too many want."""

from __future__ import annotations

import numpy as np

from wattline.twin.crowding import Load, coming_loads, price_crowding

PRICES = np.array([[100.0, 50.0, 90.0, 100.0]])


def test_where_all_fit_into_the_best_hour_it_costs_nothing_more() -> None:
    loads = [Load(0.0, 4.0, 1.0, 10.0)]
    assert not price_crowding(PRICES, np.full((1, 4), 10.0), loads).any()


def test_a_crowded_hour_becomes_dearer_until_some_go_elsewhere() -> None:
    loads = [Load(0.0, 4.0, 1.0, 10.0)]
    answer = None
    for _ in range(10):
        answer = price_crowding(PRICES, np.full((1, 4), 6.0), loads, begin=answer)
    assert answer is not None
    assert 30.0 < answer[0, 1] < 50.0  # about what the next best hour is dearer
    assert answer[0, 0] == answer[0, 3] == 0.0


def test_a_second_site_takes_what_does_not_fit_the_first() -> None:
    prices = np.array([[50.0, 50.0], [60.0, 60.0]])
    loads = [Load(0.0, 2.0, 2.0, 10.0)]
    answer = None
    for _ in range(10):
        answer = price_crowding(prices, np.full((2, 2), 6.0), loads, begin=answer)
    assert answer is not None
    assert (np.abs(answer[0] - 10.0) < 6.0).all()


def test_nobody_asks_nothing_costs() -> None:
    assert not price_crowding(PRICES, np.full((1, 4), 1.0), []).any()


def test_those_to_come_are_as_many_as_came() -> None:
    loads = coming_loads([(2.0, 24.0), (6.0, 24.0)] * 12, 24.0, 48)
    assert sum(load.count * load.work_hours for load in loads) / 48 == 4.0
    assert all(load.until_hour == load.from_hour + load.work_hours + 24.0 for load in loads)
    assert coming_loads([], 24.0, 48) == []
