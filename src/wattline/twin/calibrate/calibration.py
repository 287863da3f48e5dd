"""Calibration: which figures of a facility does its telemetry confirm, correct, or leave open?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wattline.facility import Facility
from wattline.twin.calibrate.dies import fit_dies
from wattline.twin.calibrate.draw import fit_draw
from wattline.twin.calibrate.fit import Fit, Outcome
from wattline.twin.calibrate.loops import fit_loops
from wattline.twin.calibrate.meters import match_meters
from wattline.twin.calibrate.speeds import fit_speeds
from wattline.twin.calibrate.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    facility: Facility
    telemetry: Telemetry
    fits: tuple[Fit, ...]
    suspect: tuple[str, ...]  # series set aside because their unit cannot be right
    unknown: Mapping[str, int]  # subjects that the facility does not have: readings

    @property
    def fitted(self) -> tuple[Fit, ...]:
        return tuple(fit for fit in self.fits if fit.outcome is Outcome.FITTED)

    @property
    def open(self) -> tuple[Fit, ...]:
        return tuple(fit for fit in self.fits if fit.outcome is Outcome.CANNOT_TELL)


def calibrate(facility: Facility, telemetry: Telemetry) -> Calibration:
    """Fit all that can be fitted; every figure is either fitted or comes with the reason why not."""
    meters = match_meters(telemetry, facility)
    return Calibration(
        facility=facility,
        telemetry=telemetry,
        fits=(
            *fit_dies(facility, meters),
            *fit_loops(facility, meters),
            *fit_draw(facility, meters),
            *fit_speeds(facility, meters),
        ),
        suspect=tuple(meters.suspect.values()),
        unknown=meters.unknown,
    )
