from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.looking import Outcome, Wattline
from twin.planning import HALL
from wattline.cli.plan_flags import option_of
from wattline.errors import UsageError

PLAN = """\
plan: next-year
facility: halls.yaml
horizon: 4h
seeds: 2
workload: {filled: 100%, arrivals_per_hour: 12, gpus: [2, 4, 8], runs: [1h, 3h]}
options:
  - name: racks
    changes: [{rack: north/r1, copies: 3, grow: [loop, power]}]
    cost: {capital: 100_000, lifetime_years: 4}
  - name: uplink
    changes: [{link: ns, bandwidth_factor: 2}]
"""
TRACE = "timestamp,duration,num_gpus,gpu_time,cluster\n" + "".join(
    f"2024-01-01 {minute // 60:02d}:{minute % 60:02d}:00,5400,8,43200,vc\n" for minute in range(0, 120, 5)
)
FIELDS = {
    "plan", "trace", "facility", "policy", "truth", "arrival_scale", "begins_at", "horizon_hours", "seeds",
    "gpus", "base", "options", "recommendation", "emulated", "not_estimated",
}  # fmt: skip


@pytest.fixture
def folder(in_folder: Path) -> Path:
    """Halls, a plan for them, and a trace beside it."""
    (in_folder / "halls.yaml").write_text(HALL.replace("WEATHER", "# not known"))
    (in_folder / "plan.yaml").write_text(PLAN)
    (in_folder / "jobs.csv").write_text(TRACE)
    return in_folder


def with_trace(wattline: Wattline, *flags: str) -> Outcome:
    return wattline("twin", "plan", *flags, "--facility", "halls.yaml", "--trace", "jobs.csv", "--seeds", "1")


@pytest.mark.usefixtures("folder")
def test_a_table_tells_what_each_option_buys_in_eighty_columns(
    wattline: Wattline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = wattline("twin", "plan", "plan.yaml", "--plots", "out")
    assert told.code == 0, told.err
    assert all(len(line) <= 80 for line in told.out.splitlines())
    assert "jobs of next-year on halls under default: 4 h from 2024-01-01, 2 seeds" in told.out
    assert "emulated: a twin, not measurements" in told.out
    assert "3 more racks like north/r1, its loop and its supplies built out" in told.out
    assert "PUE not re-estimated, as the weather of north is not known" in told.out
    assert "  no cost was given, so dollars are energy alone" in told.out
    assert "changes nothing, with any of 2 seeds" in told.out
    assert "recommendation: " in told.out
    assert "6 of 6 runs" in told.err
    assert Path("out/plan.png").is_file()


@pytest.mark.usefixtures("folder")
def test_json_has_every_option_with_its_figures_and_intervals(wattline: Wattline) -> None:
    told = wattline("twin", "plan", "plan.yaml", "--output", "json").json
    assert set(told) == FIELDS
    assert (told["horizon_hours"], told["seeds"], told["gpus"]) == (4.0, [0, 1], 24)
    racks, uplink = told["options"]
    gain = racks["figures"]["useful_gpu_hours"]
    assert set(gain) == {"base", "option", "difference", "low", "high", "is_clear"}
    assert gain["difference"] == pytest.approx(gain["option"] - gain["base"])
    assert gain["base"] == told["base"]["useful_gpu_hours"]
    assert racks["option_usd"] == pytest.approx(25_000 * 4 / (365.25 * 24))
    assert (uplink["option_usd"], racks["figures"]["pue"]["option"]) == (None, None)


def test_a_plan_has_weather_of_its_own_and_a_day_on_which_it_begins(wattline: Wattline, folder: Path) -> None:
    """From 24 °C on a July night: dry coolers alone cannot hold 30 °C, and save where they need not."""
    weather = "begins: 2024-07-15\nweather: {north: {january: 5C, july: 28C}}\n"
    warmer = "  - {name: warmer, cost: {per_year: 0}, changes: [{loop: north/cdu, warmer_by: 3K}]}\n"
    (folder / "plan.yaml").write_text(weather + PLAN + warmer)
    for jobs in ((), ("--trace", "jobs.csv", "--horizon", "4h")):
        told = wattline("twin", "plan", "plan.yaml", *jobs, "--output", "json").json
        assert told["begins_at"] == "2024-07-15T00:00:00Z"
        racks, _, warmer_water = told["options"]
        assert racks["figures"]["pue"]["option"] is not None
        assert warmer_water["figures"]["energy_kwh"]["difference"] < 0.0
    winter = wattline("twin", "plan", "plan.yaml", "--begins", "2024-01-15", "--output", "json").json
    assert winter["options"][2]["figures"]["energy_kwh"]["difference"] == 0.0


def test_weather_of_a_site_that_is_not_there_is_refused(wattline: Wattline, folder: Path) -> None:
    (folder / "plan.yaml").write_text(PLAN + "weather: {nord: {january: 5C, july: 24C}}\n")
    told = wattline("twin", "plan", "plan.yaml")
    assert told.code == 2
    assert "plan.yaml:12:17: weather.nord: no such site in halls" in told.err
    assert "north" in told.err


def test_the_plan_that_ships_says_where_warmer_water_saves(wattline: Wattline) -> None:
    told = wattline("twin", "plan", "more-or-warmer", "--seeds", "2")
    assert told.code == 0, told.err
    cold, hot = told.out.split("\nwarmer-lulea\n")[1].split("\nwarmer-ashburn\n")
    assert "changes nothing" in cold
    assert "; saves " in hot
    recommendation = " ".join(told.out.split("recommendation: ")[1].split())
    assert recommendation.startswith("first warmer-ashburn: costs no more")
    assert "; then twenty-racks: " in recommendation
    assert "not known" not in told.out
    assert re.search(r"waits leave out those of \d+ to \d+ jobs that had not begun by the end", told.out)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("jobs", [(), ("--trace", "jobs.csv", "--horizon", "1h")])
def test_a_plan_is_for_the_season_in_which_it_begins(wattline: Wattline, jobs: tuple[str, ...]) -> None:
    asked = ("twin", "plan", "plan.yaml", "--seeds", "1", *jobs, "--begins", "2024-07-01")
    told = wattline(*asked, "--output", "json")
    assert told.code == 0, told.err
    assert told.json["begins_at"] == "2024-07-01T00:00:00Z"
    assert " from 2024-07-01, 1 seed" in wattline(*asked).out


@pytest.mark.parametrize("day", ["July", "2024-13-01", "2024-07-01T12:00", "0001-01-01", ""])
def test_a_day_that_is_none_is_told_how_to_write_one(wattline: Wattline, day: str) -> None:
    told = wattline("twin", "plan", "more-or-warmer", "--begins", day)
    assert told.code == 2
    assert "a day " in told.err


@pytest.mark.usefixtures("folder")
def test_flags_ask_without_a_document_and_each_is_an_option(wattline: Wattline) -> None:
    told = with_trace(
        wattline,
        *("--add-racks", "north/r1*2@spare", "--grow"),
        *("--supply-temperature", "north/cdu:+2K", "--uplink", "ns*2", "--cap", "south/r1*0.9"),
        *("--loop-capacity", "crah*1.2", "--feed", "north/a*1.5", "--output", "json"),
    ).json
    assert [option["changes"] for option in told["options"]] == [
        ["2 more racks like north/r1 on spare, its loop and its supplies built out"],
        ["north/cdu: supply 2 K warmer"],
        ["crah: capacity × 1.2"],
        ["north/a: rating × 1.5"],
        ["south/r1: cap × 0.9"],
        ["ns: bandwidth × 2"],
    ]
    assert told["options"][0]["name"] == "north/r1*2@spare"
    assert told["horizon_hours"] == pytest.approx(115 / 60)  # while jobs arrive
    assert told["recommendation"] == "cannot tell apart with 1 seed"


@pytest.mark.usefixtures("folder")
def test_a_trace_that_is_named_stands_for_the_plans_own_jobs(wattline: Wattline) -> None:
    asked = ("twin", "plan", "plan.yaml", "--trace", "jobs.csv", "--most-jobs", "6", "--seeds", "1")
    told = wattline(*asked, "--horizon", "1h", "--uplink", "ns*3", "--output", "json").json
    assert (told["trace"], told["horizon_hours"]) == ("jobs", 1.0)
    assert [option["name"] for option in told["options"]] == ["racks", "uplink", "ns*3"]


def test_a_plan_may_name_a_trace_beside_it(folder: Path, wattline: Wattline) -> None:
    workload = "workload: {trace: jobs.csv, arrival_scale: 2}\n"
    lines = [workload if line.startswith("workload") else line for line in PLAN.splitlines(keepends=True)]
    (folder / "deep").mkdir()
    for name in ("halls.yaml", "jobs.csv"):
        (folder / name).rename(folder / "deep" / name)
    (folder / "deep" / "plan.yaml").write_text("".join(line for line in lines if "horizon" not in line))
    told = wattline("twin", "plan", "deep/plan.yaml", "--seeds", "1", "--output", "json").json
    assert (told["trace"], told["arrival_scale"]) == ("jobs", 2.0)
    assert told["horizon_hours"] == pytest.approx(115 / 120)


def test_a_name_that_leads_nowhere_is_told_with_its_line(folder: Path, wattline: Wattline) -> None:
    (folder / "plan.yaml").write_text(PLAN.replace("link: ns", "link: nss"))
    told = wattline("twin", "plan", "plan.yaml")
    assert told.code == 2
    assert "plan.yaml:11:22: options[1].changes[0].link: there is no link in halls of this name" in told.err
    assert "did you mean 'ns'?" in told.err


def test_an_option_that_could_not_stand_is_told_with_its_line(folder: Path, wattline: Wattline) -> None:
    (folder / "plan.yaml").write_text(PLAN.replace("copies: 3, grow: [loop, power]", "copies: 40"))
    told = wattline("twin", "plan", "plan.yaml")
    assert told.code == 2
    assert "plan.yaml:8:14: options[0].changes: north/pdu-1 would not do: its idle racks draw" in told.err
    assert "allowed: grow: [loop, power]" in told.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--uplink", "nss*2"), "there is no link in halls of this name; did you mean 'ns'?"),
        (("--uplink", "ns"), "write --uplink 'LINK*2'"),
        (("--uplink", "ns*0"), "--uplink 'ns*0': "),
        (("--supply-temperature", "cdu:+2C"), "unknown unit"),
        (("--add-racks", "north/r1*40"), "--grow builds out what they hang on"),
        (("--cap", "r1*2"), "more than one rack has this name"),
        (("--grow", "--uplink", "ns*2"), "--grow builds out what added racks hang on"),
        ((), "there is nothing to plan with"),
    ],
)
def test_a_flag_that_cannot_be_asked_is_refused_with_what_to_do(
    wattline: Wattline, flags: tuple[str, ...], said: str
) -> None:
    told = with_trace(wattline, *flags)
    assert told.code == 2
    assert said in told.err


@pytest.mark.usefixtures("folder")
def test_without_jobs_there_is_nothing_to_try(wattline: Wattline) -> None:
    told = wattline("twin", "plan", "--uplink", "ns*2", "--facility", "halls.yaml")
    assert told.code == 2
    assert "there are no jobs to plan with" in told.err
    told = wattline("twin", "plan", "plan.yaml", "--skip-days", "2")
    assert told.code == 2
    assert "--skip-days is about a trace" in told.err


def test_a_plan_that_is_nowhere_could_not_be_evaluated(wattline: Wattline) -> None:
    told = wattline("twin", "plan", "more-or-warmr")
    assert told.code == 3
    assert "did you mean 'more-or-warmer'?" in told.err


@pytest.mark.parametrize("written", ["a/r*", "*2", "a/r*2.5", "a/r*-1", "a/r*2@", "a/r*1e3"])
def test_copies_are_a_whole_number(written: str) -> None:
    with pytest.raises(UsageError):
        option_of("--add-racks", written, grow=False)


@pytest.mark.parametrize(
    ("flag", "written", "says"),
    [
        ("--add-racks", "north/r1*0", "this is too small, got 0; allowed: at least 1"),
        ("--cap", "north/r1*9999", "this is too large, got 9999.0; allowed: at most 1000"),
        ("--uplink", "ns*1e400", "this is a finite number, got inf"),
        ("--seeds", "0", "this is too small, got '0'; allowed: at least 1"),
        ("--skip-days", "x", "this is a number, got 'x'"),
        ("--output", "y", "'y' is not one of 'text', 'json'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_flag_that_says_too_much_is_told_in_words_what_it_may_be(
    wattline: Wattline, flag: str, written: str, says: str
) -> None:
    told = wattline("twin", "plan", "--facility", "halls.yaml", "--trace", "jobs.csv", flag, written)
    assert told.code == 2
    said = " ".join(told.err.replace("│", " ").split())
    assert says in said
    assert "Input should" not in said
    assert "Value error" not in said
