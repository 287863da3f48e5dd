"""A change of policy is read as what it would have changed, and as what that costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.deciding import NOBODY, submit, three_in_line, write_policy
from cli.looking import Wattline, Writing


def test_decisions_that_would_have_differed_are_counted_and_the_first_told(
    writing: Writing, wattline: Wattline, tmp_path: Path
) -> None:
    three_in_line(writing)
    strict = write_policy(tmp_path, **NOBODY)
    told = wattline("policy", "diff", strict, "--seeds", "0", "--output", "json")
    assert told.code == 0
    found = told.json
    assert (found["base"], found["policy"]) == ("default (in force)", "strict")
    assert found["differences"]["by_kind"] == {"start → refuse": 3, "wait → refuse": 1}
    assert found["differences"]["by_rule"] == {"rule.nobody": 4}
    assert found["differences"]["jobs"] == 3
    first = found["differences"]["first"][0]
    assert (first["job"], first["decided"]["does"], first["would"]["does"]) == (
        "first/train",
        "start",
        "refuse",
    )
    assert (found["costs"], found["not_estimated"]) == (None, ["costs"])
    text = wattline("policy", "diff", strict, "--seeds", "0").out
    assert "4 would have differed, of 3 jobs" in text
    assert "first/train: start at here/r1-n1×1; would be: refuse" in text


def test_what_a_change_costs_is_played_forward_from_what_arrived(
    writing: Writing, wattline: Wattline, tmp_path: Path
) -> None:
    three_in_line(writing)
    submit(writing, "unfinished")
    half = write_policy(tmp_path, "one-team-less", teams={"nlp": {"quota": {"gpu_hours": 0.5}}})
    found = wattline("policy", "diff", half, "--seeds", "2", "--output", "json").json
    assert (found["jobs_played"], found["jobs_left_out"]) == (3, 1)
    costs = {contest["metric"]: contest["standings"] for contest in found["costs"]["metrics"]}
    assert {"useful_gpu_hours", "cost_usd", "energy_kwh", "carbon_kg", "wait_minutes.mean"} <= costs.keys()
    assert costs["jobs.completed"][0]["mean"] == 3
    assert costs["jobs.completed"][1]["mean"] < 3, "an hour each does not fit into half an hour"
    assert costs["useful_gpu_hours"][1]["difference"] < 0
    assert found["costs"]["policies"] == ["default (in force)", "one-team-less"]


def test_a_policy_beside_itself_differs_in_nothing_and_costs_the_same(
    writing: Writing, wattline: Wattline, tmp_path: Path
) -> None:
    three_in_line(writing)
    one, other = write_policy(tmp_path, "one"), tmp_path / "other.yaml"
    other.write_bytes(one.read_bytes())
    told = wattline("policy", "diff", one, other, "--seeds", "1")
    assert told.code == 0
    assert "not one of them would have differed" in told.out
    assert "the same for all:" in told.out
    found = wattline("policy", "diff", one, other, "--seeds", "0", "-o", "json").json
    assert (found["base"], found["policy"]) == ("one.yaml", "other.yaml")


def test_costs_that_cannot_be_told_say_why(writing: Writing, wattline: Wattline) -> None:
    submit(writing, "unfinished")
    told = wattline("policy", "diff", "default", "--seeds", "1")
    assert told.code == 0
    assert "what it costs is not known" in told.out
    found = wattline("policy", "diff", "default", "--seeds", "1", "-o", "json").json
    assert found["not_estimated"] == ["costs"]
    assert found["doubts"]


@pytest.mark.usefixtures("home")
def test_without_a_history_there_is_nothing_to_compare(wattline: Wattline) -> None:
    assert wattline("policy", "diff", "default").code == 3
    assert wattline("policy", "diff", "default", "--since", "2020-01-01").code == 3
