from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import Wattline
from cli.teaming import HOUR, POLICY, Teams
from wattline.errors import UsageError
from wattline.plane import counting
from wattline.plane.reporting import parse_week
from wattline.state import Ending
from wattline.state.account import WEEK_SECONDS, week_ends_at, week_of


@pytest.fixture
def teams(home: Path) -> Teams:
    home.parent.mkdir(exist_ok=True)
    made = Teams(home)
    if week_of(made.now) != week_of(made.now + HOUR):
        pytest.skip("a week ends just now")
    return made


def busy(teams: Teams) -> None:
    teams.ask("r1")
    teams.begin("r1")
    teams.end("r1", gpu_hours=2.5)
    teams.ask("v1", "vision", hours=20)
    teams.begin("v1")
    teams.ask("r2")
    teams.begin("r2")
    teams.ask("r3")
    teams.decide()


def test_all_teams_stand_in_a_table_with_what_is_gone_of_each_quota(teams: Teams, wattline: Wattline) -> None:
    busy(teams)
    shown = wattline("report")
    assert shown.code == 0
    assert "used this week, and the most that was promised to what runs" in shown.out
    lines = {line.split()[0]: line for line in reversed(shown.out.splitlines()) if line}
    assert "3.5 of 4" in lines["nlp"]
    assert "20 of 200" in lines["vision"]
    assert "soft" in lines["vision"]
    assert "starts-soon" in lines


@pytest.mark.parametrize("columns", ["80", "120"])
def test_no_line_is_wider_than_the_terminal(
    columns: str, teams: Teams, wattline: Wattline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    busy(teams)
    for arguments in ((), ("--team", "nlp", "--run", "r3")):
        assert max(map(len, wattline("report", *arguments).out.splitlines())) <= int(columns)


def test_a_limit_is_told_of_in_one_sentence_where_what_runs_may_reach_it(
    teams: Teams, wattline: Wattline
) -> None:
    if week_ends_at(teams.now) - teams.now < 4 * HOUR:
        pytest.skip("the week ends before the quota does")
    teams.ask("v1", "vision")
    teams.begin("v1")
    teams.end("v1", gpu_hours=198)
    teams.ask("v2", "vision")
    teams.begin("v2")
    assert "!" not in wattline("report", "--team", "vision").out, "its job ends before that"
    teams.ask("v3", "vision", hours=None)
    teams.begin("v3")
    said = " ".join(wattline("report", "--team", "vision").out.split())
    assert said.count("! ") == 1
    assert "! what runs now, if it goes on at 2 an hour, takes vision to its 200 GPU-hours by " in said
    assert "; then its jobs start with a warning" in said


def test_one_team_with_what_runs_what_waits_and_what_a_run_takes(teams: Teams, wattline: Wattline) -> None:
    busy(teams)
    shown = wattline("report", "--team", "nlp", "--run", "r3")
    assert "running: 1 job on 1 GPU: r2/train" in shown.out
    assert "waiting: 1 job for 1 GPU: r3/train" in shown.out
    assert "run r3 takes 1 GPU-hours (25 % of the week's)" in shown.out
    assert "vision" not in shown.out
    told = wattline("report", "--team", "nlp", "--run", "r3", "-o", "json").json
    assert told["run"]["still"]["gpu_hours"] == 1.0
    (site,) = told["run"]["sites"]
    assert f"at most still to come, that in {site}" in " ".join(shown.out.split())
    (team,) = told["teams"]
    assert team["quotas"]["gpu_hours"] == {
        "limit": 4.0,
        "granted": 0.0,
        "used": 2.5,
        "promised": 1.0,
        "left": 0.5,
        "rate_per_hour": 1.0,
        "reaches_at": team["quotas"]["gpu_hours"]["reaches_at"],
    }
    assert [slo["name"] for slo in told["slos"]] == ["starts-soon"], "the other one is of vision"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--team", "vison"), "did you mean vision?"),
        (("--week", "2026-W99"), "is no week"),
        (("--week", "yesterday"), "is no week"),
        (("--week", "2999-W01"), "has not begun"),
        (("--run", "r9"), "is not known"),
        (("--team", "vision", "--run", "r1"), "is of nlp"),
    ],
)
def test_what_cannot_be_told_is_said(
    arguments: tuple[str, ...], said: str, teams: Teams, wattline: Wattline
) -> None:
    busy(teams)
    shown = wattline("report", *arguments)
    assert shown.code == 2
    assert said in shown.err


def test_a_week_that_is_over_is_read_from_the_journal(home: Path, wattline: Wattline) -> None:
    home.parent.mkdir(exist_ok=True)
    teams = Teams(home, ago_seconds=WEEK_SECONDS)
    teams.ask("r1")
    teams.begin("r1")
    teams.end("r1", gpu_hours=2.5)
    past = wattline("report", "--week", "last", "-o", "json").json
    assert past["week"]["is_over"] is True
    assert past["teams"][0]["quotas"]["gpu_hours"]["used"] == 2.5
    assert past["teams"][0]["quotas"]["gpu_hours"]["left"] == 1.5
    present = wattline("report", "-o", "json").json
    assert present["week"]["is_over"] is False
    assert present["teams"][0]["quotas"]["gpu_hours"]["used"] == 0.0
    shown = wattline("report", "--week", "last").out
    assert "is over" in shown
    assert "promised" not in shown


def test_weeks_are_those_of_the_calendar() -> None:
    monday = 1_794_787_200.0  # 2026-11-16T00:00Z
    assert parse_week("2026-W47", monday + 5) == parse_week("this", monday + 5)
    assert week_of(parse_week("2026-W46", monday).at) == week_of(parse_week("last", monday).at)
    assert parse_week("last", monday).is_over
    with pytest.raises(UsageError):
        parse_week("2026-W48", monday)


def test_what_was_counted_is_kept_and_gone_on_from(
    teams: Teams, home: Path, wattline: Wattline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_WORTH_KEEPING_STEPS", 1)
    busy(teams)
    wattline("report")
    kept = (home / counting.FILE_NAME).read_bytes()
    teams.end("v1", gpu_hours=1.0, ending=Ending.SUCCEEDED)
    onwards = wattline("report", "-o", "json").json
    assert (home / counting.FILE_NAME).read_bytes() != kept
    ended = {slo["name"]: slo["good"] for slo in onwards["slos"]}
    assert ended == {"starts-soon": 3.0, "vision-ends-well": 1.0}
    (home / counting.FILE_NAME).unlink()
    anew = wattline("report", "-o", "json").json
    assert anew["slos"] == onwards["slos"]


@pytest.mark.parametrize("content", [b"{}", b"nonsense", b""])
def test_a_kept_file_that_cannot_be_used_is_counted_anew(
    content: bytes, teams: Teams, home: Path, wattline: Wattline
) -> None:
    busy(teams)
    before = wattline("report", "-o", "json").json["slos"]
    (home / counting.FILE_NAME).write_bytes(content)
    assert wattline("report", "-o", "json").json["slos"] == before


def test_with_another_policy_all_is_counted_by_its_slos(
    teams: Teams, home: Path, wattline: Wattline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_WORTH_KEEPING_STEPS", 1)
    busy(teams)
    wattline("report")
    written = home.parent / "other.yaml"
    written.write_text(POLICY.replace("12min", "0s").replace("starts-soon", "starts-at-once"))
    assert teams.session.state is not None
    facility = teams.session.state.adopted["facility_sha256"]
    teams.step(teams.session.adopt(facility, teams.session.keep_policy(written), teams.now))
    at_once = wattline("report", "-o", "json").json["slos"][0]
    assert (at_once["name"], at_once["good"]) == ("starts-at-once", 0.0)
    assert at_once["bad"] > 0


def test_a_team_that_does_not_exist_is_told_with_the_nearest_name(teams: Teams, wattline: Wattline) -> None:
    busy(teams)
    told = wattline("report", "--team", "visoin")
    assert told.code == 2
    assert "did you mean vision?" in told.err


def test_quotas_above_the_facility_are_told(home: Path, wattline: Wattline) -> None:
    home.parent.mkdir(exist_ok=True)
    teams = Teams(home, POLICY.replace("gpu_hours: 200", "gpu_hours: 2000"))
    assert "quotas of 2 teams add up to 2,004 GPU-hours a week" in " ".join(wattline("report").out.split())
    checked = wattline(
        "facility", "check", home.parent / "desk.yaml", "--policy", home.parent / "policy.yaml"
    )
    assert "comes to 336" in " ".join(checked.out.split())
    teams.session.close()
