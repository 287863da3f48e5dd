"""Fit: what does telemetry say about one figure of a facility, or why can it not tell?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from wattline.twin.calibrate.intervals import Estimate, Interval, join

# An interval whose ends differ by more than this factor tells nothing that a default would not.
_WIDEST_FACTOR = 3.0


class Outcome(StrEnum):
    FITTED = "fitted"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of a facility; where its document has a field for it, `path` leads there."""

    subject: str  # a GPU model with its cooling, or a loop
    parameter: str  # its unit last
    present: float | None
    path: tuple[str, ...] = ()
    cap_fraction: float | None = None  # of a point on a cap's curve

    @property
    def name(self) -> str:
        at = "" if self.cap_fraction is None else f" at {100 * self.cap_fraction:.3g} %"
        return f"{self.subject}: {self.parameter}{at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A figure as telemetry has it: an estimate with its 95 % interval, or the reason for none."""

    figure: Figure
    outcome: Outcome
    interval: Interval | None = None
    samples: int = 0
    reason: str = ""
    note: str = ""  # what was taken as given

    @property
    def present_is_outside(self) -> bool:
        present = self.figure.present
        if self.interval is None or present is None:
            return False
        return not self.interval.low <= present <= self.interval.high


def cannot_tell(figure: Figure, reason: str, samples: int = 0) -> Fit:
    return Fit(figure=figure, outcome=Outcome.CANNOT_TELL, reason=reason, samples=samples)


def conclude(
    figure: Figure, estimates: Sequence[Estimate], samples: int, *, worth: float = 1.0, note: str = ""
) -> Fit:
    """Join what devices say; `worth` turns what was fitted into the figure's unit."""
    joined = join(estimates)
    if joined.high / joined.low > _WIDEST_FACTOR:
        reason = f"anything from {joined.low * worth:.3g} to {joined.high * worth:.3g} fits as well"
        return cannot_tell(figure, reason, samples)
    interval = Interval(estimate=joined.estimate * worth, low=joined.low * worth, high=joined.high * worth)
    return Fit(figure=figure, outcome=Outcome.FITTED, interval=interval, samples=samples, note=note)


def note_time_scale(scales: Iterable[float]) -> str:
    """What the facility says of emulated meters, and a reader who brings other telemetry would not guess."""
    faster = [f"{scale:g}" for scale in sorted(set(scales)) if scale != 1.0]
    if not faster:
        return ""
    times = " or ".join(faster)
    return f"times are {times} times those measured: time_scale says that heat moves so much faster there"


def is_usable(estimate: Estimate) -> bool:
    """Whether one device's figure may be weighed against the others' at all."""
    return (
        math.isfinite(estimate.value)
        and math.isfinite(estimate.error)
        and estimate.value > 0.0
        and estimate.error < 0.5 * estimate.value
    )


def summarise(reasons: Sequence[str]) -> str:
    """One reason for many things: the first, and how many more there are."""
    first = reasons[0]
    return first if len(reasons) == 1 else f"{first} (and the like for {len(reasons) - 1} more)"
