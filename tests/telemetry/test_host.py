"""Host: a power meter of the board is read; processors alone are not what a machine draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from metering import a_hall
from wattline.telemetry.asking import MeterError
from wattline.telemetry.host import HostSource


def a_source(root: Path) -> HostSource:
    (site,) = a_hall({"source": "host"}).sites
    return HostSource(site, site.sources[0], root)


def a_meter(root: Path, number: int, name: str, **files: str) -> None:
    folder = root / "hwmon" / f"hwmon{number}"
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    for file, content in files.items():
        (folder / file).write_text(content)


def test_all_meters_of_the_board_are_added_and_others_are_not(tmp_path: Path) -> None:
    a_meter(tmp_path, 0, "coretemp", power1_average="99000000")
    a_meter(tmp_path, 1, "power_meter", power1_average="1500000000\n", power2_average="900000000\n")
    readings = a_source(tmp_path).read(100.0)
    assert {(one.subject, one.quantity, one.value, one.at) for one in readings} == {
        (f"zurich/r{rack}-n{node}", "node_watts", 2400.0, 100.0) for rack in (1, 2) for node in (1, 2)
    }


@pytest.mark.parametrize("content", ["", "lots", "1e3"])
def test_a_meter_that_makes_no_sense_says_nothing(tmp_path: Path, content: str) -> None:
    a_meter(tmp_path, 0, "power_meter", power1_average=content)
    with pytest.raises(MeterError, match="no power meter of its board: it has none"):
        a_source(tmp_path).read(0.0)


def test_processors_alone_are_said_and_not_told(tmp_path: Path) -> None:
    (tmp_path / "powercap" / "intel-rapl:0").mkdir(parents=True)
    with pytest.raises(MeterError, match="only its processors have meters"):
        a_source(tmp_path).read(0.0)
