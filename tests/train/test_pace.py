"""How many micro-batches are computed at once, and how long does a step rest afterwards?"""

from __future__ import annotations

import threading
import time

import pytest

from wattline.train.pace import MAX_REST_SECONDS, Pace, choose_in_flight, rest_seconds


@pytest.mark.parametrize(
    ("most", "fraction", "in_flight", "rest"),
    [
        (8, 1.0, 8, 0.0),
        (8, 0.5, 4, 0.0),
        (8, 0.6, 4, 0.0),
        (100, 0.29, 29, 0.0),
        (2, 0.5, 1, 0.0),
        (2, 0.25, 1, 10.0),
        (1, 1.0, 1, 0.0),
        (1, 0.5, 1, 10.0),
        (1, 0.8, 1, 2.5),
        (1, 0.001, 1, MAX_REST_SECONDS),
    ],
)
def test_fewer_in_flight_first_and_idle_time_for_what_is_left(
    most: int, fraction: float, in_flight: int, rest: float
) -> None:
    assert choose_in_flight(most, fraction) == in_flight
    assert rest_seconds(most, fraction, worked_seconds=10.0) == pytest.approx(rest)


class Gauge:
    """Counts how many are inside at once; the first to come stay until as many as expected have come."""

    def __init__(self, expected: int = 1) -> None:
        self.lock = threading.Lock()
        self.inside = self.most = 0
        self.expected, self.all_there = expected, threading.Event()

    def __call__(self, number: int) -> int:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            if self.inside >= self.expected:
                self.all_there.set()
        assert self.all_there.wait(30), "fewer in flight than allowed"
        time.sleep(0.02 - 0.002 * number)  # more than allowed would come meanwhile
        with self.lock:
            self.inside -= 1
        return number * number


@pytest.mark.parametrize(("fraction", "in_flight"), [(1.0, 4), (0.5, 2), (0.25, 1), (0.1, 1)])
def test_results_are_in_order_and_never_more_than_allowed_are_in_flight(
    fraction: float, in_flight: int
) -> None:
    pace, gauge = Pace(4), Gauge(in_flight)
    assert pace.map(gauge, range(8), fraction) == [number * number for number in range(8)]
    assert gauge.most == in_flight
    assert (pace.step_most, pace.step_in_flight) == (4, in_flight)
    pace.close()


def test_there_are_never_more_in_flight_than_batches() -> None:
    pace, gauge = Pace(16), Gauge()
    pace.map(gauge, range(3), 1.0)
    assert pace.step_most == 3
    assert pace.map(gauge, [], 1.0) == []
    pace.close()


def test_what_a_micro_batch_raises_reaches_the_script() -> None:
    pace = Pace(2)
    with pytest.raises(ZeroDivisionError):
        pace.map(lambda number: 1 // number, [1, 0, 1, 1], 1.0)
    pace.close()
