from __future__ import annotations

from collections.abc import Callable

import pytest

from wattline.errors import Problem
from wattline.spec import Policy, parse_document

GOOD = b"""
policy: mine
roles: {capacity-approver: [ada], board: [joan, grace]}
teams: {nlp: {approvers: board}, vision: {}}
slos:
  - name: starts-soon
    indicator: start_wait_seconds
    objective: 95%
    within: 12min
    while: power_headroom > 20%
    class: high-density-training
    project: nlp
  - name: moves-quickly
    indicator: resume_seconds
    objective: 90%
    within: checkpoint-interval
    across_sites: true
    while: link_headroom > 50%
    window: 7d
  - {name: keeps-work, indicator: lost_work, objective: 98%}
  - {name: caps, indicator: cap_violations, objective: 100%}
"""


def test_slos_and_roles_are_read() -> None:
    policy = parse_document(GOOD, Policy, file="policy.yaml")
    soon, moves, keeps, caps = policy.slos
    assert (soon.within, soon.window_seconds, soon.class_) == (720.0, 28 * 86400.0, "high-density-training")
    assert (moves.within, moves.window_seconds) == ("checkpoint-interval", 7 * 86400.0)
    assert caps.objective == 1.0
    assert policy.roles["board"] == ("joan", "grace")
    assert [team.approvers for team in policy.teams.values()] == ["board", "capacity-approver"]
    assert soon.sentence() == (
        "95 % of jobs of class high-density-training of nlp start within 12 min "
        "while power_headroom > 20%, over 28 d"
    )
    assert moves.sentence() == (
        "90 % of jobs go on at another site within one checkpoint interval "
        "while link_headroom > 50%, over 7 d"
    )
    assert keeps.sentence() == "98 % of GPU-hours are kept, over 28 d"


# The mark stands before what is wrong, and is taken out.
MARK = "@"
LOST = "slos: [{name: a, indicator: lost_work, objective: "
SOON = "slos: [{name: a, indicator: start_wait_seconds, objective: 9%, within: "


@pytest.mark.parametrize(
    ("text", "field", "message", "nearest"),
    [
        (
            "slos: [{name: a, indicator: @start_wait, objective: 9%}]",
            "indicator",
            "not one",
            "start_wait_seconds",
        ),
        ("slos: [@{name: a, indicator: lost_work}]", "objective", "required", None),
        (LOST + "@0}]", "objective", "too small", None),
        (LOST + "@101%}]", "objective", "between 0 and 1", None),
        (LOST + "9%, @windw: 7d}]", "windw", "unknown field", "window"),
        (LOST + "9%, window: @8d}]", "window", "not one", "28d"),
        (LOST + "9%, while: @power_headrom > 1}]", "while", "unknown name 'power_headrom'", "power_headroom"),
        (LOST + "9%, while: @1 < 2}]", "while", "at least one", None),
        (LOST + "9%, while: @power_headroom}]", "while", "true or false", None),
        (LOST + "9%, within: @5s}]", "within", "whatever", None),
        ("slos: [{name: a, indicator: @resume_seconds, objective: 9%}]", "indicator", "needs within", None),
        (SOON + "@5}]", "within", "needs a unit", None),
        (SOON + "@checkpoint-interval}]", "within", "only resume_seconds", None),
        (SOON + "5s, across_sites: @true}]", "across_sites", "only resume_seconds", None),
        (SOON.replace("start_wait", "promotion") + "5s, class: @x}]", "class", "no class", None),
        (SOON.replace("start_wait", "rollback") + "5s, while: @gpus_free > 1%}]", "while", "no site", None),
        (LOST.replace("lost_work", "cap_violations") + "9%, project: @nlp}]", "project", "no project", None),
    ],
)
def test_a_wrong_slo_is_told_with_its_place_and_what_was_meant(
    faults_in: Callable[..., tuple[Problem, ...]], text: str, field: str, message: str, nearest: str | None
) -> None:
    (problem,) = faults_in(text.replace(MARK, ""), Policy)
    assert (problem.column, problem.field) == (text.index(MARK) + 1, f"slos[0].{field}")
    assert message in problem.message
    assert problem.nearest == nearest


@pytest.mark.parametrize(
    ("text", "field", "message", "nearest"),
    [
        (LOST + "9%}, {name: @a, indicator: throttled, objective: 9%}]", "slos[1].name", "two SLOs", None),
        ("teams: {a: {weight: @0}}", "teams.a.weight", "too small", None),
        ("{roles: {board: [joan]}, teams: {a: {approvers: @bord}}}", "teams.a.approvers", "nobody", "board"),
        ("roles: {board: [@..]}", "roles.board[0]", "a name is", None),
    ],
)
def test_two_of_a_name_and_roles_that_nobody_has_are_told_too(
    faults_in: Callable[..., tuple[Problem, ...]], text: str, field: str, message: str, nearest: str | None
) -> None:
    (problem,) = faults_in(text.replace(MARK, ""), Policy)
    assert (problem.column, problem.field) == (text.index(MARK) + 1, field)
    assert message in problem.message
    assert problem.nearest == nearest
