"""Which nodes are newly unread is found without going through all that are silent, and is right."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from building import Hall, a_site, a_world
from wattline.state import Measured, Snapshot
from wattline.state.dump import dump_state, load_state

NODES = [f"zurich/r{rack}-n{node}" for rack in (1, 2) for node in (1, 2)]
MAX_AGE = 30.0

# Seconds later, which node, which meter, and what it reads; None: that it cannot. No node: a decision.
Word = tuple[float, str | None, str, float | None]
WORDS = st.tuples(
    st.sampled_from([0.0, 1.0, 10.0, 29.0, 30.0, 31.0]),
    st.sampled_from([*NODES, None]),
    st.sampled_from(["gpu_celsius", "gpu_watts"]),
    st.sampled_from([None, None, 40.0, 80.0]),
)


def newly_unread(snapshot: Snapshot, decided_at: float) -> set[int]:
    """The same, by its definition."""
    conditions, spots = snapshot.conditions, snapshot.plant.spots
    found = set()
    for column in (conditions.node_celsius, conditions.node_gpu_watts):
        for node, (_, read_at) in column.items():
            is_old = node in conditions.mute and snapshot.at - read_at > MAX_AGE
            was_believed = decided_at - read_at <= MAX_AGE
            if is_old and (was_believed or spots[node].loop_resource in snapshot.touched_resources):
                found.add(node)
    return found


def tell(hall: Hall, node: str, quantity: str, value: float | None) -> None:
    hall.fold(Measured(at=hall.at, readings=((f"{node}/gpu0", quantity, value),)))


@given(st.lists(WORDS, max_size=40))
def test_who_is_newly_unread_follows_who_falls_silent_and_speaks_again(words: list[Word]) -> None:
    hall = a_world(a_site(racks=2, nodes=2, gpus=2))
    decided_at = hall.at
    hall.decide()
    for seconds, node, quantity, value in words:
        hall.wait(seconds)
        hall.fold(Measured(at=hall.at, readings=(), unchanged=("zurich",)))
        if node is None:
            decided_at = hall.at
            hall.decide()
        else:
            tell(hall, node, quantity, value)
        snapshot = hall.snapshot()
        assert set(snapshot.unread_nodes(MAX_AGE)) == newly_unread(snapshot, decided_at)
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    snapshot = Snapshot(loaded, hall.at)
    assert loaded.conditions.mute == hall.state.conditions.mute
    assert loaded.doubted_seconds == hall.state.doubted_seconds
    assert set(snapshot.unread_nodes(MAX_AGE)) == newly_unread(snapshot, loaded.decided_at)


def test_meters_that_were_never_heard_before_are_read_back_as_such() -> None:
    hall = a_world(a_site())
    hall.decide()
    hall.wait(1.0)
    hall.fold(Measured(at=hall.at, readings=(), unchanged=("zurich",)))
    assert hall.state.doubted_seconds == {0: math.inf}
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert loaded.doubted_seconds == {0: math.inf}
