"""Teams take turns by their standing, and each sends its first; who cannot be helped is not put in line."""

from __future__ import annotations

from collections.abc import Callable

from building import Hall, a_job, a_policy, a_world
from wattline.policy.turns.turns import Turns
from wattline.state import Line

TEAMS: dict[str, object] = {"x": {}, "y": {}}


def a_line(hall: Hall, since_seconds: float, job: str, **changes: object) -> None:
    """Somebody of a shape of its own comes so long after the start."""
    at, hall.at = hall.at, hall.at + since_seconds
    hall.submit(a_job(f"{job}/train", cpus=1.0 + 0.01 * len(hall.state.jobs), **changes))
    hall.at = at


def turns_of(
    hall: Hall,
    standing: Callable[[str], float] | None = None,
    may_go: Callable[[Line], bool] = lambda _: True,
) -> Turns:
    return Turns(hall.snapshot(), hall.policy, standing, may_go)


def everybody(turns: Turns) -> list[str]:
    found = []
    while (head := turns.next()) is not None:
        found.append(head.job_id.removesuffix("/train"))
    return found


def test_without_standings_the_first_who_came_is_first_whatever_its_team() -> None:
    hall = a_world()
    for since, name, team in ((3.0, "c", "x"), (1.0, "a", "y"), (2.0, "b", "x")):
        a_line(hall, since, name, project=team)
    assert everybody(turns_of(hall)) == ["a", "b", "c"]


def test_of_those_who_came_at_once_the_biggest_is_first() -> None:
    hall = a_world()
    for name, seconds in (("a", 3600.0), ("b", 9 * 3600.0), ("c", 4 * 3600.0)):
        a_line(hall, 0.0, name, max_duration_seconds=seconds)
    assert everybody(turns_of(hall)) == ["b", "c", "a"]


def test_a_more_urgent_class_goes_first() -> None:
    hall = a_world(policy=a_policy(classes={"urgent": {"priority": 5}}))
    a_line(hall, 0.0, "a")
    a_line(hall, 9.0, "b", scheduling_class="urgent")
    assert everybody(turns_of(hall)) == ["b", "a"]


def test_a_team_that_was_given_something_lets_the_other_go_first() -> None:
    held = {"x": 0.0, "y": 1.0}
    hall = a_world(policy=a_policy(teams=TEAMS))
    for name, team in (("x1", "x"), ("x2", "x"), ("y1", "y")):
        a_line(hall, 0.0, name, project=team)
    turns = turns_of(hall, held.__getitem__)
    first = turns.next()
    assert first is not None
    assert first.job_id == "x1/train"
    held["x"] = 2.0
    assert everybody(turns) == ["y1", "x2"]


def test_a_class_that_preempts_goes_before_all_whatever_its_team_holds() -> None:
    classes = {"serving": {"priority": 5, "preempts": True}}
    hall = a_world(policy=a_policy(teams=TEAMS, classes=classes))
    a_line(hall, 0.0, "y1", project="y")
    a_line(hall, 0.0, "x1", project="x", scheduling_class="serving")
    assert everybody(turns_of(hall, {"x": 9.0, "y": 0.0}.__getitem__)) == ["x1", "y1"]


def test_the_next_of_a_line_gets_in_line_behind_those_who_came_before_it() -> None:
    hall = a_world()
    for since, name, cpus in ((1.0, "a", 1.0), (2.0, "b", 2.0), (3.0, "c", 1.0)):
        hall.at += since
        hall.submit(a_job(f"{name}/train", cpus=cpus))
    turns = turns_of(hall)
    first = turns.next()
    assert first is not None
    assert first.job_id == "a/train"
    assert turns.put_back(first)
    assert everybody(turns) == ["b", "c"]
    assert not turns.put_back(first), "nobody is left in its line"


def test_lines_that_may_not_go_are_passed_over() -> None:
    hall = a_world()
    for number in range(6):
        a_line(hall, float(number), f"r{number}", gpus=1 + number % 2)
    assert everybody(turns_of(hall, None, lambda line: line.kind[0] == 2)) == ["r1", "r3", "r5"]
