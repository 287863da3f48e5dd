from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import DESK, Wattline, Writing
from wattline.cli.facility_review import review_facility
from wattline.cli.facility_tree import span
from wattline.spec import FacilityDocument, build_facility, parse_document
from wattline.telemetry.nvml import NvmlDevice


@pytest.mark.usefixtures("home")
def test_like_racks_are_folded_so_that_three_sites_fit_a_screen_or_two(wattline: Wattline) -> None:
    shown = wattline("facility", "show", "three-sites")
    assert shown.code == 0
    assert len(shown.out.splitlines()) < 80
    assert "8 racks  a01..a08" in shown.out
    unfolded = wattline("facility", "show", "three-sites", "--all").out
    assert "a07" in unfolded
    assert len(unfolded.splitlines()) > 300


@pytest.mark.usefixtures("home")
def test_what_is_emulated_says_so_and_real_gpus_are_told_apart(wattline: Wattline) -> None:
    shown = wattline("facility", "show")
    assert shown.out.count("emulated") == 3, "the facility and both its sites"
    assert "NVIDIA GPUs of this machine" in shown.out


@pytest.mark.usefixtures("home")
def test_this_machines_gpus_are_listed_with_their_meters(
    wattline: Wattline, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = NvmlDevice(index=0, name="H100", power_watts=71.3, limit_watts=700.0, celsius=34.0)
    monkeypatch.setattr("wattline.cli.command_facility.read_nvml_devices", lambda: [device])
    shown = wattline("facility", "show").out
    (line,) = [line for line in shown.splitlines() if "H100" in line]
    assert line.split() == ["0", "H100", "71.3", "W", "700", "W", "34.0", "°C"]


@pytest.mark.usefixtures("home")
def test_json_has_every_rack_and_node(wattline: Wattline) -> None:
    shown = wattline("facility", "show", "philly-800", "--output", "json").json
    (site,) = shown["sites"]
    assert sum(node["gpus"] for rack in site["racks"] for node in rack["nodes"]) == shown["gpus"] == 800
    assert shown["as_of"] is None
    assert shown["not_estimated"] == ["as_of"]
    assert shown["nvml"].keys() == {"devices", "reason"}


def test_a_facility_in_use_shows_what_is_taken(writing: Writing, home: Path, wattline: Wattline) -> None:
    writing.submit("run")
    writing.decide()
    shown = wattline("facility", "show", home.parent / "desk.yaml", "--output", "json").json
    free = [node["gpus_free"] for site in shown["sites"] for rack in site["racks"] for node in rack["nodes"]]
    assert sorted(free) == [0, 1]
    assert shown["as_of"] is not None
    assert "0 GPUs free" in wattline("facility", "show", home.parent / "desk.yaml").out
    assert wattline("facility", "show", "lab", "--output", "json").json["as_of"] is None


@pytest.mark.usefixtures("home")
def test_a_facility_that_promises_more_than_it_has_is_warned_about(
    in_folder: Path, wattline: Wattline
) -> None:
    tight = DESK.replace("capacity: 2kW", "capacity: 400W").replace(
        "wall: {rating: 2kW}", "wall: {rating: 1kW}"
    )
    (in_folder / "tight.yaml").write_text(tight)
    told = wattline("facility", "check", "tight.yaml")
    assert told.code == 0
    text = " ".join(told.out.split())
    assert "here/r1: its cap 1 kW is above the 800 W that here/wall carries for hours" in text
    assert "here/room: takes 400 W of the 500 W" in text
    assert "no link leads there" in text


def test_the_ratios_are_nameplate_over_cap() -> None:
    document = parse_document(DESK.encode(), FacilityDocument, file="desk.yaml")
    here = review_facility(build_facility(document)).sites[0]
    assert here.nameplate_watts == 500
    assert here.feed_oversubscription == 500 / 1600
    assert here.rack_oversubscription == 500 / 1000


def test_a_wrong_document_is_told_by_line_and_a_missing_one_too(in_folder: Path, wattline: Wattline) -> None:
    (in_folder / "wrong.yaml").write_text(DESK.replace("loop: room", "loop: rom"))
    told = wattline("facility", "check", "wrong.yaml")
    assert told.code == 2
    assert "wrong.yaml:10:43: sites.here.racks.r1.loop" in told.err
    assert "did you mean 'room'?" in told.err
    assert wattline("facility", "check", "nowhere.yaml").code == 3
    assert "did you mean 'lab'?" in wattline("facility", "show", "lba").err


@pytest.mark.parametrize(
    ("names", "text"),
    [(["s/r1"], "r1"), (["s/r01", "s/r02"], "r01..r02"), (["s/a1", "s/b2"], "a1, …, b2")],
)
def test_a_range_reads_as_documents_write_it(names: list[str], text: str) -> None:
    assert span(names) == text
