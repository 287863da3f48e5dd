from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from twin.calibrate.synthesis import HALL, Meters, a_hall, telemetry, write_csv
from wattline.errors import RefusedError
from wattline.spec import FacilityDocument, build_facility, parse_document
from wattline.twin.calibrate import (
    Calibration,
    Figure,
    Fit,
    Interval,
    Outcome,
    calibrate,
    read_telemetry,
    rewrite_facility,
)

MAY_DAY = 1714521600.0


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    rows = telemetry(1, meters=Meters(readings=900))
    path = write_csv(tmp_path_factory.mktemp("calibration") / "telemetry.csv", rows)
    return calibrate(a_hall(), read_telemetry(path))


def rewritten(text: str, calibration: Calibration) -> str:
    return rewrite_facility(text.encode(), calibration, at=MAY_DAY, file="hall.yaml")[0].decode()


DEVICE = (
    "{limit: 400W, least_limit: 100W, idle: 68W, throttle: 85C, slowdown: 89C, shutdown: 92C, "
    "kelvin_per_watt_air: 0.1, kelvin_per_watt_liquid: 0.05, usd_per_hour: 1.6}"
)
BLOCK_LOOP = (
    "crah:\n        kind: air  # from the roof\n        capacity: 4kW\n        supply: 22C   # all year"
)
LAYOUTS = {
    "flow": HALL,
    "block": HALL.replace("crah: {kind: air, capacity: 4kW, supply: 22C}  # one unit", BLOCK_LOOP),
    "said already": HALL.replace("supply: 22C}", "supply: 22C, approach: 9K, time_constant: 1min}"),
    "device there": HALL.replace("sites:", f"devices:\n  A100: {DEVICE}\nsites:"),
    "another device there": HALL.replace("sites:", f"devices:\n  X1: {DEVICE}  # ours\nsites:"),
    "no device there": HALL.replace("sites:", "devices: {}\nsites:"),
    "no end of line": HALL.rstrip("\n"),
    "windows": HALL.replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + HALL,
    "json": json.dumps(yaml.safe_load(HALL)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_document_of_any_layout_gets_the_figures_and_keeps_the_rest(
    layout: str, calibration: Calibration
) -> None:
    text = rewritten(LAYOUTS[layout], calibration)
    facility = build_facility(parse_document(text.encode(), FacilityDocument, file="hall.yaml"))
    (site,) = facility.sites
    (loop,) = site.loops
    device = site.racks[0].nodes[0].device
    assert device is not None
    assert loop.approach_kelvin == pytest.approx(8.0, rel=0.05)
    assert loop.time_constant_seconds == pytest.approx(70.0, rel=0.05)
    assert device.kelvin_per_watt_air == pytest.approx(0.085, rel=0.05)
    assert (device.kelvin_per_watt_liquid, device.limit_watts) == (0.05, 400.0)
    for line in LAYOUTS[layout].lstrip("\ufeff").splitlines():
        if "#" in line:
            assert line.partition("#")[2] in text, "comments stay"


def test_the_comment_at_the_top_says_when_from_what_and_how_surely(calibration: Calibration) -> None:
    first, second, *_ = rewritten(HALL, calibration).splitlines()
    assert first.startswith("# Calibrated on 2024-05-01 from 5,400 readings in ")
    assert second.startswith("#   devices.A100.kelvin_per_watt_air: 0.0")
    assert "was 0.1; 900 samples)" in second


def test_nothing_fitted_is_nothing_to_write(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [(1.0, "r1", "rack_watts", 100.0)])
    with pytest.raises(RefusedError, match="nothing was fitted"):
        rewrite_facility(
            HALL.encode(), calibrate(a_hall(), read_telemetry(path)), at=MAY_DAY, file="hall.yaml"
        )


def test_figures_that_break_the_document_are_not_written(calibration: Calibration) -> None:
    tight = HALL.replace("cap: 9kW", "cap: 380W")  # four idle GPUs and their box draw 372 W
    figure = Figure(subject="A100", parameter="idle_watts", present=68.0, path=("devices", "A100", "idle"))
    interval = Interval(estimate=80.0, low=79.0, high=81.0)
    hungry = replace(calibration, fits=(Fit(figure=figure, outcome=Outcome.FITTED, interval=interval),))
    with pytest.raises(RefusedError, match="its idle nodes draw 420 W"):
        rewritten(tight, hungry)


def test_where_two_kinds_of_cooling_share_a_field_the_hotter_is_written(calibration: Calibration) -> None:
    path = ("devices", "A100", "kelvin_per_watt_air")
    fits = tuple(
        Fit(
            figure=Figure(subject=f"A100 on {kind}", parameter="kelvin_per_watt", present=0.1, path=path),
            outcome=Outcome.FITTED,
            interval=Interval(estimate=value, low=value, high=value),
        )
        for kind, value in (("air", 0.12), ("rear-door", 0.09))
    )
    assert "kelvin_per_watt_air: 0.12," in rewritten(HALL, replace(calibration, fits=fits))
