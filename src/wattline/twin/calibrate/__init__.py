"""Fits from telemetry: which figures of a facility its own meters confirm, correct or leave open.

    facility = read_facility("facility.yaml")
    calibration = calibrate(facility, read_telemetry("telemetry.csv.gz"))

Only NumPy is needed. How estimates and intervals are made is told in `first_order` and `intervals`.
"""

from wattline.twin.calibrate.calibration import Calibration, calibrate
from wattline.twin.calibrate.fit import Figure, Fit, Outcome
from wattline.twin.calibrate.intervals import Interval
from wattline.twin.calibrate.reading import read_telemetry
from wattline.twin.calibrate.rewriting import rewrite_facility
from wattline.twin.calibrate.telemetry import BadLine, Telemetry

__all__ = [
    "BadLine",
    "Calibration",
    "Figure",
    "Fit",
    "Interval",
    "Outcome",
    "Telemetry",
    "calibrate",
    "read_telemetry",
    "rewrite_facility",
]
