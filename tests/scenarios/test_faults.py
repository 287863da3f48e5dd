"""Seeded runs on a small emulated facility in which something breaks; what was decided is in the journal."""

from __future__ import annotations

from cli.running import Desk, assert_nothing_is_left, model_of
from scenarios.halls import a_scenario
from wattline.state import Action, ActionKind, Measured, Noticed


def told(desk: Desk) -> list[tuple[float, Action]]:
    """Every action after the first start, with its time."""
    found = [(record.decision.at, action) for record in desk.steps() for action in record.decision.actions]
    assert found[0][1].kind is ActionKind.START
    return found[1:]


def test_a_job_that_loses_its_cooling_gives_way_rung_by_rung_and_ends_the_same(desk: Desk) -> None:
    ladder = [{"cap_power": "70%"}, {"shrink_batch": "50%"}, {"pause": "1s"}, {"migrate": "any"}]
    options = a_scenario(desk, {"loop": "north/crah", "flow": "0.5%"}, ladder, steps=120)
    ran = desk.run(*options)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    actions = [action for _, action in told(desk)]
    assert [action.kind for action in actions] == ["cap_power", "shrink_batch", "pause", "migrate"]
    assert {action.because.split()[0] for action in actions[:3]} == {"cooling.loop"}
    assert [round(action.fraction, 6) for action in actions[:2]] == [0.7, 0.5]
    assert all(action.lost_gpu_seconds > 0 for action in actions)
    (train,) = ran.json["phases"]
    assert [(one["site"], one["ending"]) for one in train["attempts"]] == [
        ("north", "paused"),
        ("south", "succeeded"),
    ]
    resumed = [event.say for event in desk.events() if isinstance(event, Noticed) and "resumed" in event.say]
    assert len(resumed) == 1
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)


def test_a_feed_that_carries_less_leads_to_caps_for_its_reason(desk: Desk) -> None:
    ladder = [{"cap_power": "70%"}, {"cap_power": "50%"}]
    options = a_scenario(desk, {"supply": "north/main", "rating": "1%"}, ladder, steps=100)
    ran = desk.run(*options)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    actions = [action for _, action in told(desk)]
    assert [action.kind for action in actions] == ["cap_power", "cap_power"]
    assert [round(action.fraction, 6) for action in actions] == [0.7, 0.5]
    assert all(action.because.startswith("power.") for action in actions), actions
    assert all("north/main" in action.because for action in actions), actions
    limits = {
        value
        for event in desk.events()
        if isinstance(event, Measured)
        for subject, quantity, value in event.readings
        if quantity == "gpu_limit_watts" and subject.startswith("north/")
    }
    assert limits == {400.0, 280.0, 200.0}
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)


def test_a_fault_that_ends_gives_the_cap_back_only_after_a_while(desk: Desk) -> None:
    fault = {"supply": "north/main", "rating": "1%", "lasts": "2s"}
    options = a_scenario(desk, fault, [{"cap_power": "70%"}], steps=180)
    ran = desk.run(*options)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    (capped_at, cap), (freed_at, free) = told(desk)
    assert [action.kind for action in (cap, free)] == ["cap_power", "cap_power"]
    assert [round(action.fraction, 6) for action in (cap, free)] == [0.7, 1.0]
    assert free.because == "pressure has gone"
    (began_at,) = (event.at for event in desk.events() if isinstance(event, Noticed) and "trip" in event.say)
    assert began_at <= capped_at < began_at + 2.0 + 2.0
    assert freed_at >= began_at + 2.0 + 2.0  # the fault's two seconds, then two without pressure
    assert_nothing_is_left(desk)
