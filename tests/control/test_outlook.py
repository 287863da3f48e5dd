"""Looking ahead: on a period, sooner when the queue changed, and for no more than its share of the time."""

from __future__ import annotations

from building import Hall, a_job, a_world
from wattline.control import Outlook, look_ahead
from wattline.spec.policy import Policy
from wattline.state import Event, Forecasted, Measured, Noticed, RunSubmitted, State


class Told:
    """A forecaster that takes a second each time, by a clock of its own."""

    def __init__(self) -> None:
        self.clock, self.times = 0.0, 0

    def forecast(self, _state: State, _policy: Policy, at: float) -> Forecasted | None:
        self.clock += 1.0
        self.times += 1
        return Forecasted(at=at, starts=(), samples=1, horizon_seconds=1.0)


def looked_after(seconds: float, outlook: Outlook, told: Told, hall: Hall) -> bool:
    told.clock += seconds
    return outlook.look(hall.state, hall.policy, hall.at) is not None


def test_the_next_look_is_a_minute_later_or_when_the_queue_has_changed() -> None:
    told, hall = Told(), a_world()
    outlook = Outlook(told, lambda: told.clock)
    changed = RunSubmitted(at=hall.at, run="r1", pipeline="p", jobs=(a_job(),))
    assert looked_after(0.0, outlook, told, hall)
    assert not looked_after(59.0, outlook, told, hall)
    assert looked_after(1.0, outlook, told, hall)
    outlook.hear([Measured(at=hall.at, readings=())])
    assert not looked_after(30.0, outlook, told, hall), "a reading changes no queue"
    outlook.hear([changed])
    assert looked_after(0.0, outlook, told, hall)


def test_however_often_the_queue_changes_it_takes_a_twentieth_of_the_time_at_most() -> None:
    told, hall = Told(), a_world()
    outlook = Outlook(told, lambda: told.clock)
    for _ in range(1000):
        outlook.hear([RunSubmitted(at=hall.at, run="r1", pipeline="p", jobs=())])
        looked_after(0.5, outlook, told, hall)
    assert 0.04 * told.clock < told.times <= 0.05 * told.clock + 1


class _Broken:
    def forecast(self, _state: State, _policy: Policy, _at: float) -> Forecasted | None:
        raise KeyError("somebody")


def test_a_forecaster_that_fails_is_noticed_and_ends_nothing() -> None:
    hall = a_world()
    found = look_ahead(_Broken(), hall.state, hall.policy, hall.at)
    assert isinstance(found, Noticed)
    assert "KeyError" in found.say


def test_who_learns_hears_all_that_the_loop_hears() -> None:
    told, hall = Told(), a_world()
    heard: list[Event] = []
    outlook = Outlook(told, lambda: told.clock, learn=heard.extend)
    events: list[Event] = [
        Measured(at=hall.at, readings=()),
        RunSubmitted(at=hall.at, run="r1", pipeline="p", jobs=()),
    ]
    outlook.hear(events)
    assert heard == events
