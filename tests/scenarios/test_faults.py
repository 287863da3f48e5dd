"""Seeded runs on a small emulated facility in which something breaks; what was decided is in the journal."""

from __future__ import annotations

from collections.abc import Callable

from cli.running import Desk, Ran, assert_nothing_is_left, end, model_of, wait_until
from scenarios.halls import a_scenario
from wattline.state import Action, ActionKind, Measured, Noticed


def told(desk: Desk) -> list[tuple[float, Action]]:
    """Every action after the first start, with its time."""
    found = [(record.decision.at, action) for record in desk.steps() for action in record.decision.actions]
    assert found[0][1].kind is ActionKind.START
    return found[1:]


def limits(desk: Desk) -> set[float | None]:
    """What GPUs of the hall that breaks were ever limited to."""
    return {
        value
        for event in desk.events()
        if isinstance(event, Measured)
        for subject, quantity, value in event.readings
        if quantity == "gpu_limit_watts" and subject.startswith("north/")
    }


def run_until(desk: Desk, options: list[str], seen: Callable[[], bool]) -> Ran:
    """However late a busy machine decides, training goes on until it has been seen, and not much longer."""
    process = desk.start(*options)
    wait_until(lambda: desk.found("runs/*/train/1/reports.jsonl") and seen(), process)
    desk.hurry()
    return end(process)


def test_a_job_that_loses_its_cooling_gives_way_rung_by_rung_and_ends_the_same(desk: Desk) -> None:
    ladder = [{"cap_power": "70%"}, {"shrink_batch": "50%"}, {"pause": "1s"}, {"migrate": "any"}]
    options = a_scenario(desk, {"loop": "north/crah", "flow": "0.5%"}, ladder)
    ran = run_until(desk, options, lambda: desk.found("runs/*/train/2/started.json"))
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
    options = a_scenario(desk, {"supply": "north/main", "rating": "1%"}, ladder)
    ran = run_until(desk, options, lambda: 200.0 in limits(desk))
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    actions = [action for _, action in told(desk)]
    assert [action.kind for action in actions] == ["cap_power", "cap_power"]
    assert [round(action.fraction, 6) for action in actions] == [0.7, 0.5]
    assert all(action.because.startswith("power.") for action in actions), actions
    assert all("north/main" in action.because for action in actions), actions
    assert limits(desk) == {400.0, 280.0, 200.0}
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)


def test_a_fault_that_ends_gives_the_cap_back_only_after_a_while(desk: Desk) -> None:
    fault = {"supply": "north/main", "rating": "1%", "lasts": "4s"}
    options = a_scenario(desk, fault, [{"cap_power": "70%"}])
    ran = run_until(desk, options, lambda: desk.actions("train").count(ActionKind.CAP_POWER) == 2)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    (capped_at, cap), (freed_at, free) = told(desk)
    assert [action.kind for action in (cap, free)] == ["cap_power", "cap_power"]
    assert [round(action.fraction, 6) for action in (cap, free)] == [0.7, 1.0]
    assert free.because == "pressure has gone"
    (began_at,) = (event.at for event in desk.events() if isinstance(event, Noticed) and "trip" in event.say)
    assert began_at <= capped_at < began_at + 4.0 + 2.0
    assert freed_at >= began_at + 4.0 + 2.0  # the fault's four seconds, then two without pressure
    assert_nothing_is_left(desk)
