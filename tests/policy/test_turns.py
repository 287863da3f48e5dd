"""Teams take turns by their standing, and each sends its first."""

from __future__ import annotations

from wattline.policy.turns import Turns


def order(since: float, name: str, *, gpu_hours: float = 0.0) -> tuple[float, float, float, float, str]:
    return (0.0, 0.0, since, -gpu_hours, name)


def everybody(turns: Turns[str]) -> list[str]:
    found = []
    while (name := turns.next()) is not None:
        found.append(name)
    return found


def test_without_standings_the_first_who_came_is_first_whatever_its_team() -> None:
    turns: Turns[str] = Turns(None)
    for since, name, team in ((3.0, "c", "x"), (1.0, "a", "y"), (2.0, "b", "x")):
        turns.add(0.0, team, order(since, name), name)
    assert everybody(turns) == ["a", "b", "c"]


def test_of_those_who_came_at_once_the_biggest_is_first() -> None:
    turns: Turns[str] = Turns(None)
    for name, gpu_hours in (("a", 1.0), ("b", 9.0), ("c", 4.0)):
        turns.add(0.0, "x", order(0.0, name, gpu_hours=gpu_hours), name)
    assert everybody(turns) == ["b", "c", "a"]


def test_a_team_that_was_given_something_lets_the_other_go_first() -> None:
    held = {"x": 0.0, "y": 1.0}
    turns: Turns[str] = Turns(held.__getitem__)
    for name, team in (("x1", "x"), ("x2", "x"), ("y1", "y")):
        turns.add(0.0, team, order(0.0, name), name)
    assert turns.next() == "x1"
    held["x"] = 2.0
    assert everybody(turns) == ["y1", "x2"]


def test_who_goes_before_all_does_so_whatever_its_team_holds() -> None:
    turns: Turns[str] = Turns({"x": 9.0, "y": 0.0}.__getitem__)
    turns.add(0.0, "y", order(0.0, "y1"), "y1")
    turns.add(-5.0, "x", order(0.0, "x1"), "x1")
    assert everybody(turns) == ["x1", "y1"]


def test_the_next_of_a_queue_gets_in_line_behind_those_who_came_before_it() -> None:
    turns: Turns[str] = Turns(None)
    turns.add(0.0, "x", order(1.0, "a"), "a")
    turns.add(0.0, "x", order(3.0, "c"), "c")
    assert turns.next() == "a"
    turns.add(0.0, "x", order(2.0, "b"), "b")
    assert everybody(turns) == ["b", "c"]
