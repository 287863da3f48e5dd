from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import Wattline
from wattline.twin.report import Report

SCENARIO = """\
scenario: small
say: a feed is halved while two racks work
facility: lab
lasts: 2h
workload: {filled: 60%, gpus: [8], runs: [4h, 8h], utilisation: [90%, 100%]}
faults:
  - {name: half-a-feed, at: {after: 1h}, supply: zurich/a, rating: 30%}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


def test_both_policies_stand_side_by_side_with_their_ratio(scenario: Path, wattline: Wattline) -> None:
    done = wattline("twin", "scenario", scenario)
    assert done.code == 0, done.err
    assert "small on lab\na feed is halved while two racks work\n" in done.out
    header = next(line for line in done.out.splitlines() if "power-blind" in line)
    assert header.split() == ["default", "power-blind"]
    for figure in (
        "useful GPU-hours",
        "breakers tripped",
        "nodes shut down",
        "caps violated",
        "slowed by heat",
        "carbon",
    ):
        assert figure in done.out
    assert "useful GPU-hours, default for each of power-blind: " in done.out
    assert "emulated" in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test_a_scenario_may_begin_on_another_day(scenario: Path, wattline: Wattline) -> None:
    told = wattline("twin", "scenario", scenario, "--begins", "2024-07-01")
    assert told.code == 0, told.err
    assert " h from 2024-07-01, " in told.out


def test_json_holds_both_reports_and_the_ratio(scenario: Path, wattline: Wattline) -> None:
    done = wattline("twin", "scenario", scenario, "--seed", 3, "--output", "json")
    assert done.code == 0, done.err
    assert list(done.json) == [
        "scenario", "say", "report", "against", "useful_gpu_hours_ratio", "emulated", "not_estimated",
    ]  # fmt: skip
    ours, theirs = done.json["report"], done.json["against"]
    fields = [name for name in Report.__struct_fields__ if name != "scaling"]
    assert list(ours) == list(theirs) == fields
    assert (ours["policy"], theirs["policy"]) == ("default", "power-blind")
    assert (ours["seed"], ours["jobs"]["submitted"]) == (theirs["seed"], theirs["jobs"]["submitted"])
    ratio = ours["useful_gpu_hours"] / theirs["useful_gpu_hours"]
    assert done.json["useful_gpu_hours_ratio"] == pytest.approx(ratio)
    assert done.json["emulated"] is True


def test_a_policy_may_stand_alone_or_beside_another(scenario: Path, wattline: Wattline) -> None:
    alone = wattline("twin", "scenario", scenario, "--against", "none", "-o", "json")
    assert (alone.json["against"], alone.json["not_estimated"]) == (None, ["useful_gpu_hours_ratio"])
    assert wattline("twin", "scenario", scenario, "--against", "none").code == 0
    other = wattline("twin", "scenario", scenario, "--policy", "easy", "--against", "fifo", "-o", "json")
    assert (other.json["report"]["policy"], other.json["against"]["policy"]) == ("easy", "fifo")


def test_exact_truth_is_asked_for_and_told(scenario: Path, wattline: Wattline) -> None:
    done = wattline("twin", "scenario", scenario, "--truth", "exact", "--against", "none", "-o", "json")
    assert done.json["report"]["truth"] == "exact"


def test_pictures_and_a_page_are_written(scenario: Path, tmp_path: Path, wattline: Wattline) -> None:
    plots, page = tmp_path / "plots", tmp_path / "page.html"
    done = wattline("twin", "scenario", scenario, "--plots", plots, "--html", page)
    assert done.code == 0, done.err
    told = page.read_text()
    assert "a feed is halved while two racks work" in told
    assert "<h2>default beside power-blind</h2>" in told
    assert "useful GPU-hours, default for each of power-blind: " in told
    assert "power.png" in [path.name for path in plots.iterdir()]
    assert page.read_text().startswith("<!")
    assert str(page) in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["heat-wave"], 3, "did you mean 'heatwave'?"),
        (["pump-trip", "--facility", "lab"], 2, "facility lab has no loop of this name, got 'lulea/cdu-1'"),
        (["pump-trip", "--policy", "power-blind"], 2, "policy power-blind beside itself shows nothing"),
        (["pump-trip", "--against", "power-blnd"], 3, "did you mean 'power-blind'?"),
        (["missing/heat.yaml"], 3, "there is no such file"),
    ],
)
def test_what_cannot_be_played_is_told_before_anything_runs(
    arguments: list[str], code: int, says: str, wattline: Wattline
) -> None:
    done = wattline("twin", "scenario", *arguments)
    assert (done.code, done.out) == (code, "")
    assert says in done.err


def test_a_document_that_is_wrong_is_told_with_its_line(tmp_path: Path, wattline: Wattline) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(SCENARIO.replace("rating: 30%", "ratting: 30%"))
    done = wattline("twin", "scenario", path)
    assert done.code == 2
    assert f"{path}:7:" in done.err
    assert "did you mean 'rating'?" in done.err
