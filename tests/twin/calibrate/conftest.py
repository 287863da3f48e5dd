from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from twin.calibrate.synthesis import Row, a_hall, write_csv
from wattline.twin.calibrate import Calibration, Fit, calibrate, read_telemetry

Fitting = Callable[[Iterable[Row]], "Found"]


class Found:
    """A calibration, by the name of a figure."""

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration

    def __getitem__(self, parameter: str) -> Fit:
        (found,) = [fit for fit in self.calibration.fits if fit.figure.parameter == parameter]
        return found


@pytest.fixture
def fitting(tmp_path: Path) -> Fitting:
    """Readings to fits, through a file, for the hall of `synthesis`."""

    def fit(rows: Iterable[Row]) -> Found:
        return Found(calibrate(a_hall(), read_telemetry(write_csv(tmp_path / "telemetry.csv", rows))))

    return fit
