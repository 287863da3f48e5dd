"""A job that has to leave again soon after it came back waits longer each time, and says so."""

from __future__ import annotations

import pytest

from building import Hall, a_job, a_ladder, a_policy, a_site, a_world, kinds
from wattline.policy import explain
from wattline.state import JobState

CAP_WATTS = 10_000.0
CLEAR_SECONDS = 120.0


def a_hall() -> Hall:
    """A job that draws more than its rack carries as soon as it runs, whatever it says."""
    policy = a_policy(thresholds={"settle": "30s", "clear_for": "120s"})
    hall = a_world(
        a_site("zurich", nodes=2, gpus=2, rack_cap_watts=CAP_WATTS, telemetry="emulated"), policy=policy
    )
    read(hall, 0.0)
    hall.run(a_job(gpus=2, checkpoints=True, ladder=a_ladder({"pause": "24h"}), max_duration_seconds=1e6))
    return hall


def read(hall: Hall, share: float) -> None:
    for name, quantity in (("r1", "rack_watts"), ("feed-a", "supply_watts"), ("loop", "loop_heat_watts")):
        hall.read(f"zurich/{name}", quantity, share * CAP_WATTS)


def pass_time(hall: Hall, seconds: float = 30.0) -> list[tuple[str, str]]:
    """What it draws is too much while it runs, and nothing while it does not."""
    hall.wait(seconds)
    read(hall, 1.2 if hall.job().state is JobState.RUNNING else 0.1)
    return decide(hall)


def decide(hall: Hall) -> list[tuple[str, str]]:
    decision = hall.decide()
    hall.obey(decision)
    return kinds(decision)


def away_seconds(hall: Hall) -> float:
    """It is paused and comes back: how long it was away."""
    while pass_time(hall) != [("pause", "r1/train")]:
        pass
    since = hall.at
    while pass_time(hall) != [("resume", "r1/train")]:
        pass
    return hall.at - since


def test_each_return_in_vain_waits_twice_as_long_as_the_one_before() -> None:
    hall = a_hall()
    away = [away_seconds(hall) for _ in range(4)]
    # A reading late each: it is clear from the first look on that finds it so.
    assert away == pytest.approx([CLEAR_SECONDS * 2**times + 30.0 for times in range(4)])


def test_a_wait_does_not_grow_without_end() -> None:
    hall = a_hall()
    away = [away_seconds(hall) for _ in range(9)]
    assert away[-1] == away[-2] == pytest.approx(64 * CLEAR_SECONDS + 30.0)


def test_who_ran_well_for_a_while_comes_back_as_soon_as_at_first() -> None:
    hall = a_hall()
    first = [away_seconds(hall) for _ in range(3)]
    for _ in range(40):
        hall.wait(30.0)
        read(hall, 0.4)
        assert decide(hall) == []
    assert away_seconds(hall) == first[0] < first[2]


def test_why_it_stays_away_is_said_with_how_long() -> None:
    hall = a_hall()
    for _ in range(2):
        away_seconds(hall)
    while pass_time(hall) != [("pause", "r1/train")]:
        pass
    pass_time(hall)
    pass_time(hall)
    found = explain(hall.snapshot(), hall.policy, "r1/train")
    assert found.say == (
        "r1/train waits for pressure to stay gone at zurich: comes back in 7.5 min, once it has been gone "
        "for 8 min; it had to leave 3 times soon after it began there."
    )
    assert found.blocked_by is not None
    assert found.blocked_by.rule == "pressure.cleared"
