from __future__ import annotations

from collections.abc import Callable

import pytest

from building import Hall
from wattline.control import Decide
from wattline.state import Decision

Take = Callable[[Hall, Decide], Decision]


@pytest.fixture
def take() -> Take:
    """Let a baseline decide in a hall, take it as promised, and let the facility obey."""

    def take_turn(hall: Hall, decide: Decide) -> Decision:
        decision = decide(hall.snapshot(), hall.policy)
        hall.state.settle(decision)
        hall.obey(decision)
        return decision

    return take_turn
