"""A queue is a list in order, whoever leaves it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wattline.state import Queue
from wattline.state.heads import Key

MANY = 2000


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=200))
def test_whoever_comes_and_goes_it_is_in_order(history: list[tuple[bool, int]]) -> None:
    queue, there = Queue(), list[Key]()
    for number, (comes, where) in enumerate(history):
        if comes or not there:
            key = (0.0, float(where), f"r{number}")
            queue.enter(key)
            there = sorted([*there, key])
        else:
            queue.leave(there.pop(min(where, len(there)) - 1 if where else 0))
        assert list(queue) == there
        assert [queue[each] for each in range(len(queue))] == there


def test_who_has_left_from_the_front_is_not_kept() -> None:
    queue = Queue([(0.0, float(number), "r") for number in range(MANY)])
    for number in range(MANY - 1):
        assert queue[0] == (0.0, float(number), "r")
        queue.leave(queue[0])
        assert len(queue) == MANY - 1 - number
    assert list(queue) == [(0.0, float(MANY - 1), "r")]
    assert queue
    queue.leave(queue[0])
    assert not queue
