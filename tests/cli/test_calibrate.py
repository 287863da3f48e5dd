from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import Wattline, Writing
from twin.calibrate.synthesis import HALL, Meters, telemetry, write_csv
from wattline.spec import read_facility
from wattline.state import Measured

FITTED = {"kelvin_per_watt", "die_time_constant_seconds", "approach_kelvin", "time_constant_seconds"}


@pytest.fixture
def hall(in_folder: Path) -> Path:
    """A folder with a facility document and half an hour of its telemetry."""
    (in_folder / "hall.yaml").write_text(HALL)
    write_csv(in_folder / "half-hour.csv", telemetry(1, meters=Meters(readings=900)))
    return in_folder


@pytest.mark.usefixtures("hall")
def test_a_table_shows_what_was_fitted_and_what_could_not_be_told(wattline: Wattline) -> None:
    told = wattline("facility", "calibrate", "hall.yaml", "--telemetry", "half-hour.csv")
    assert told.code == 0
    assert "5,400 readings, 2024-01-01T00:00:00.000Z to 2024-01-01T00:29:58.000Z" in told.out
    (line,) = [line for line in told.out.splitlines() if "die above coolant" in line]
    assert line.startswith("A100 on air")
    assert "0.1 outside" in line
    assert "no gpu_utilisation was given" in told.out
    assert "no throughput was given" in told.out


@pytest.mark.usefixtures("hall")
def test_json_has_the_same_and_names_what_is_not_estimated(wattline: Wattline) -> None:
    asked = ("facility", "calibrate", "hall.yaml", "--telemetry", "half-hour.csv", "--output", "json")
    told = wattline(*asked).json
    fits = {fit["parameter"]: fit for fit in told["fits"]}
    assert {name for name, fit in fits.items() if fit["verdict"] == "fitted"} == FITTED
    resistance = fits["kelvin_per_watt"]
    low, high = resistance["interval"]
    assert low < resistance["estimate"] < high
    assert (resistance["present"], resistance["present_outside"]) == (0.1, True)
    assert resistance["field"] == "devices.A100.kelvin_per_watt_air"
    assert fits["idle_watts"]["estimate"] is None
    assert told["not_estimated"] == [
        "A100: idle_watts",
        "A100: full_utilisation_watts",
        "A100: speed_under_cap",
    ]
    assert (told["telemetry"]["readings"], told["telemetry"]["bad"], told["written"]) == (5400, 0, None)


def test_the_written_document_is_one_and_has_the_figures(hall: Path, wattline: Wattline) -> None:
    asked = ("facility", "calibrate", "hall.yaml", "--telemetry", "half-hour.csv", "--write", "fitted.yaml")
    told = wattline(*asked)
    assert told.code == 0
    assert "wrote fitted.yaml with 3 of these figures" in told.out
    assert wattline("facility", "check", "fitted.yaml").code == 0
    (loop,) = read_facility(hall / "fitted.yaml").sites[0].loops
    assert loop.approach_kelvin == pytest.approx(8.0, rel=0.05)
    written = (hall / "fitted.yaml").read_bytes()
    refused = wattline(*asked)
    assert refused.code == 2
    assert "fitted.yaml is there already" in refused.err
    assert (hall / "fitted.yaml").read_bytes() == written
    assert (hall / "hall.yaml").read_text() == HALL


def test_nothing_told_is_exit_code_3_with_reasons_and_nothing_is_written(
    hall: Path, wattline: Wattline
) -> None:
    write_csv(hall / "idle.csv", [(1e9 + at, "r1-n1/gpu0", "gpu_watts", 68.0) for at in range(100)])
    told = wattline("facility", "calibrate", "hall.yaml", "--telemetry", "idle.csv", "--write", "new.yaml")
    assert told.code == 3
    assert "no gpu_celsius was given" in told.out
    assert not (hall / "new.yaml").exists()


def test_what_is_wrong_with_telemetry_is_told_beside_the_fits(hall: Path, wattline: Wattline) -> None:
    with (hall / "half-hour.csv").open("a") as file:
        file.write("oops\n1e9,mars/r1,rack_watts,5\n")
    told = wattline("facility", "calibrate", "hall.yaml", "--telemetry", "half-hour.csv")
    assert told.code == 0
    assert "1 line could not be used: line 5402: the line has 1 columns" in told.out
    assert "1 reading of what this facility lacks: mars/r1" in told.out


@pytest.mark.parametrize(
    ("facility", "readings", "code", "message"),
    [
        ("hall.yaml", "nowhere.csv", 3, "there is no such file"),
        ("nowhere.yaml", "half-hour.csv", 3, "there is no such file"),
        ("hall.yaml", "hall.yaml", 2, "the first line names the columns"),
        ("half-hour.csv", "half-hour.csv", 2, "half-hour.csv"),
    ],
)
@pytest.mark.usefixtures("hall")
def test_bad_input_is_told_with_its_exit_code(
    facility: str, readings: str, code: int, message: str, wattline: Wattline
) -> None:
    told = wattline("facility", "calibrate", facility, "--telemetry", readings)
    assert told.code == code
    assert message in told.err
    assert told.out == ""


def test_a_state_folders_own_journal_is_telemetry(writing: Writing, home: Path, wattline: Wattline) -> None:
    rows = telemetry(2, meters=Meters(readings=300))
    moments: dict[float, list[tuple[str, str, float | None]]] = {}
    for at, subject, quantity, value in rows:
        moments.setdefault(at, []).append((subject, quantity, value))
    silent = ("mars", "gpu_watts", None)
    writing.step(*(Measured(at=at, readings=(*readings, silent)) for at, readings in moments.items()))
    (home.parent / "hall.yaml").write_text(HALL)
    asked = ("facility", "calibrate", home.parent / "hall.yaml", "--output", "json", "--telemetry")
    told = wattline(*asked, home)
    assert told.code == 0
    assert told.json["telemetry"]["readings"] == 6 * 300
    assert told.json["telemetry"]["bad"] == 300
    by_file = wattline(*asked, write_csv(home.parent / "same.csv", rows)).json
    assert told.json["fits"] == by_file["fits"]
