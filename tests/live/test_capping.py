"""Capping: a slow actuator keeps nobody waiting, and what came of a cap is answered once it is known."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import pytest

from metering import wait_until
from wattline.errors import UnavailableError
from wattline.live.capping import Capping
from wattline.state import Acknowledged, Action, ActionFailed, ActionKind, Event, Noticed

ATTEMPT = "r/train/1"


class Slow:
    """An actuator that waits until it may, and writes down what it was asked for."""

    name, kinds = "slow", frozenset({"cap_power"})

    def __init__(self, *, is_slow: bool = True) -> None:
        self.is_slow = is_slow
        self.go_on, self.asked = threading.Event(), list[str]()
        self.trouble: Exception | None = None

    def begin(self, attempt: str, nodes: Mapping[str, int]) -> None:
        self.asked.append(f"begin {attempt}")

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        assert not self.is_slow or self.go_on.wait(60)
        self.asked.append(f"cap {fraction:g}")
        if self.trouble is not None:
            raise self.trouble

    def end(self, attempt: str) -> None:
        self.asked.append(f"end {attempt}")
        if self.trouble is not None:
            raise self.trouble

    def close(self) -> None:
        self.asked.append("close")


def a_cap(fraction: float = 0.5) -> Action:
    return Action(
        id=f"cap-{fraction:g}", kind=ActionKind.CAP_POWER, job="r/train", attempt=1, fraction=fraction
    )


def polled(capping: Capping) -> list[Event]:
    found: list[Event] = []

    def is_done() -> bool:
        found.extend(capping.poll(7.0))
        return not capping.is_busy

    wait_until(is_done)
    return found


def test_a_slow_one_is_answered_later_and_in_order() -> None:
    actuator = Slow()
    capping = Capping(actuator)
    began = time.monotonic()
    capping.begin(ATTEMPT, {"zurich/r1-n1": 8}, 1.0)
    for fraction in (0.8, 0.5):
        capping.cap(a_cap(fraction), ATTEMPT)
    assert capping.is_busy
    assert time.monotonic() - began < 20
    actuator.go_on.set()
    assert polled(capping) == [Acknowledged(at=7.0, action="cap-0.8"), Acknowledged(at=7.0, action="cap-0.5")]
    assert actuator.asked == [f"begin {ATTEMPT}", "cap 0.8", "cap 0.5"]
    capping.close()
    assert actuator.asked[-1] == "close"


@pytest.mark.parametrize("is_slow", [True, False])
def test_what_fails_is_told_as_failed_and_what_cannot_be_put_back_is_noticed(is_slow: bool) -> None:
    actuator = Slow(is_slow=is_slow)
    actuator.go_on.set()
    actuator.trouble = UnavailableError("the helper said no", hint="ask it kindly")
    capping = Capping(actuator)
    capping.cap(a_cap(), ATTEMPT)
    capping.end(ATTEMPT)
    assert polled(capping) == [
        ActionFailed(at=7.0, action="cap-0.5", say="the helper said no"),
        Noticed(at=7.0, subject=ATTEMPT, say="its power limits: the helper said no"),
    ]
    capping.close()


def test_who_begins_under_a_cap_is_capped_at_once() -> None:
    actuator = Slow(is_slow=False)
    capping = Capping(actuator)
    capping.begin(ATTEMPT, {"zurich/r1-n1": 8}, 0.6)
    assert actuator.asked == [f"begin {ATTEMPT}", "cap 0.6"]
    capping.close()
