from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import Wattline
from cli.teaming import Teams
from wattline.control import replay
from wattline.live import Home
from wattline.plane.session import Session
from wattline.state import ExceptionAnswered, ExceptionAsked, JobState, Noticed
from wattline.store.steps import read_steps

ASK = ("exception", "request", "--project", "nlp", "--because", "the deadline moved", "--as", "ada")


@pytest.fixture
def teams(home: Path) -> Teams:
    home.parent.mkdir(exist_ok=True)
    return Teams(home)


def ask(wattline: Wattline, *more: str) -> None:
    asked = wattline(*ASK, "--rule", "quota", "--amount", "2", "--until", "3d", *more)
    assert asked.code == 0, asked.err


def test_a_request_is_numbered_and_says_who_answers(teams: Teams, home: Path, wattline: Wattline) -> None:
    teams.session.close()
    asked = wattline(*ASK, "--rule", "quota", "--amount", "2", "--until", "3d")
    assert asked.code == 0
    assert asked.out.startswith("ex-1: nlp 2 GPU-hours more a week until ")
    assert "capacity-approver answers (grace, joan)" in asked.out
    (listed,) = wattline("exception", "list", "-o", "json").json["exceptions"]
    assert (listed["id"], listed["state"], listed["asked_by"]) == ("ex-1", "asked", "ada")
    assert (listed["rule"], listed["amount"]) == ("quota.gpu_hours", 2.0)
    session = Session(Home(home))
    assert list(replay(read_steps(session.store.journal), session.documents)) == []
    session.close()


def test_an_approved_one_starts_what_waited_for_it(teams: Teams, home: Path, wattline: Wattline) -> None:
    for run in ("r1", "r2"):
        teams.ask(run, hours=3.0)
        teams.begin(run) if run == "r1" else teams.decide()
    assert teams.session.state is not None
    assert teams.session.state.jobs["r2/train"].state is JobState.WAITING
    teams.session.close()
    ask(wattline)
    approved = wattline("exception", "approve", "ex-1", "--as", "grace", "--note", "this once")
    assert approved.code == 0
    assert "taken at their word" in approved.out
    teams.reopen(home)
    teams.decide()
    job = teams.session.state.jobs["r2/train"]
    assert job.state is JobState.STARTING
    assert "allowed by exception ex-1 of grace" in " ".join(verdict.say for verdict in job.verdicts)
    teams.session.close()
    explained = wattline("explain", "r2/train", "-o", "json").json
    assert "allowed by exception ex-1 of grace" in str(explained["verdicts"])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("approve", "ex-9", "--as", "grace"), 2, "did you mean ex-1?"),
        (("approve", "ex-1", "--as", "ada"), 1, "ada asked for it"),
        (("approve", "ex-1", "--as", "bob"), 1, "bob is no capacity-approver"),
        (("deny", "ex-1", "--as", "bob"), 1, "bob is no capacity-approver"),
        (("approve", "ex-1", "--as", "a/b"), 2, "a name is"),
    ],
)
def test_an_answer_that_may_not_be_given_is_refused(
    arguments: tuple[str, ...], code: int, said: str, teams: Teams, wattline: Wattline
) -> None:
    teams.session.close()
    ask(wattline)
    answered = wattline("exception", *arguments)
    assert answered.code == code
    assert said in answered.err
    assert wattline("exception", "list", "-o", "json").json["exceptions"][0]["state"] == "asked"


def test_what_was_answered_is_not_answered_again(teams: Teams, wattline: Wattline) -> None:
    teams.session.close()
    ask(wattline)
    assert wattline("exception", "deny", "ex-1", "--as", "grace", "-o", "json").json["state"] == "denied"
    again = wattline("exception", "approve", "ex-1", "--as", "joan")
    assert again.code == 1
    assert "it was denied by grace" in again.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rule", "quta", "--until", "3d"), "did you mean quota?"),
        (("--rule", "quota", "--amount", "3", "--until", "3d", "--project", "npl"), "did you mean nlp?"),
        (
            ("--rule", "quota", "--amount", "3", "--until", "3d", "--because", "x" * 501),
            "501 characters, 500",
        ),
        (("--rule", "quota", "--amount", "3", "--until", "3d", "--because", " \t"), "gives no reason"),
    ],
)
def test_a_request_that_cannot_be_is_told_what_would_be_right(
    arguments: tuple[str, ...], said: str, teams: Teams, wattline: Wattline
) -> None:
    teams.session.close()
    asked = wattline(*ASK, *arguments)
    assert asked.code == 2
    assert said in asked.err
    assert wattline("exception", "list").out == "nobody asked for an exception here\n"


def test_who_writes_the_journal_asks_again_whether_an_answer_may_be_given(teams: Teams, home: Path) -> None:
    """What lies in the inbox was written by anybody who may write there."""
    now = teams.now
    asked = ExceptionAsked(
        at=now, actor="ada", project="nlp", key="k", rule="small", until=now + 99, because="a test"
    )
    teams.step(asked)
    other = Session(Home(home))
    for actor in ("ada", "bob", "grace"):
        other.tell(ExceptionAnswered(at=now + 2, actor=actor, exception="ex-1", approved=True))
    other.tell(ExceptionAsked(at=now, project="nlp", key="k2", rule="smal", until=now + 99, because="a test"))
    other.close()
    heard = teams.session.requests()
    assert [type(event) for event in heard] == [Noticed, Noticed, ExceptionAnswered, Noticed]
    assert "exception.self" in str(heard[0])
    assert "exception.role" in str(heard[1])
    assert "smal" in str(heard[3])
