"""`facility calibrate`: what telemetry says about a facility's figures, and a document that has them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.errors import UnavailableError, UsageError
from wattline.plane.moments import iso
from wattline.spec import find_facility, read_facility
from wattline.twin.calibrate import Calibration, Fit, calibrate, read_telemetry, rewrite_facility

_LABELS = {
    "kelvin_per_watt": ("die above coolant", "K/W"),
    "die_time_constant_seconds": ("time constant of the die", "s"),
    "approach_kelvin": ("coolant above supply at capacity", "K"),
    "time_constant_seconds": ("time constant", "s"),
    "idle_watts": ("idle draw", "W"),
    "full_utilisation_watts": ("draw at full utilisation", "W"),
    "speed_under_cap": ("speed under a power cap", ""),
}
_MOST_NAMED = 5


def calibrate_facility(name_or_path: str, *, telemetry: Path, write: Path | None, as_json: bool) -> int:
    """0 where something was fitted; 3 where telemetry could tell nothing."""
    if write is not None and write.exists():
        raise UsageError(f"{plain(str(write))} is there already", hint="name a file that does not exist yet")
    facility = read_facility(name_or_path)
    calibration = calibrate(facility, read_telemetry(telemetry))
    written: tuple[Fit, ...] = ()
    if write is not None and calibration.fitted:
        written = _write(write, name_or_path, calibration)
    if as_json:
        print_json(_describe(calibration, write, written))
    else:
        _show(stdout_console(), calibration, write, written)
    return 0 if calibration.fitted else 3


def _write(path: Path, name_or_path: str, calibration: Calibration) -> tuple[Fit, ...]:
    source = find_facility(name_or_path)
    text, written = rewrite_facility(source.read_bytes(), calibration, at=time.time(), file=str(source))
    try:
        with path.open("xb") as file:
            file.write(text)
    except OSError as error:
        raise UnavailableError(f"{plain(str(path))}: cannot be written: {error.strerror or error}") from error
    return written


def _describe(calibration: Calibration, write: Path | None, written: tuple[Fit, ...]) -> dict[str, Any]:
    telemetry = calibration.telemetry
    return {
        "facility": calibration.facility.name,
        "source": calibration.facility.source,
        "telemetry": {
            "source": telemetry.source,
            "readings": telemetry.readings,
            "begins_at": iso(telemetry.begins_at),
            "ends_at": iso(telemetry.ends_at),
            "bad": telemetry.bad,
            "bad_lines": telemetry.bad_lines,
            "repeated": telemetry.repeated,
            "unused": telemetry.unused,
            "unknown_subjects": calibration.unknown,
            "suspect": calibration.suspect,
        },
        "fits": [_describe_fit(fit, is_written=fit in written) for fit in calibration.fits],
        "written": str(write) if written else None,
        "not_estimated": [fit.figure.name for fit in calibration.open],
    }


def _describe_fit(fit: Fit, *, is_written: bool) -> dict[str, Any]:
    return {
        "subject": fit.figure.subject,
        "parameter": fit.figure.parameter,
        "cap_fraction": fit.figure.cap_fraction,
        "verdict": fit.outcome,
        "estimate": None if fit.interval is None else fit.interval.estimate,
        "interval": None if fit.interval is None else [fit.interval.low, fit.interval.high],
        "samples": fit.samples,
        "present": fit.figure.present,
        "present_outside": fit.present_is_outside,
        "reason": fit.reason,
        "note": fit.note,
        "field": ".".join(fit.figure.path) or None,
        "written": is_written,
    }


def _show(console: Console, calibration: Calibration, write: Path | None, written: tuple[Fit, ...]) -> None:
    telemetry = calibration.telemetry
    span = f", {iso(telemetry.begins_at)} to {iso(telemetry.ends_at)}" if telemetry.readings else ""
    console.print(
        Text.assemble(
            (calibration.facility.name, "bold"),
            f"  {telemetry.readings:,} readings{span}, in {plain(telemetry.source)}",
        )
    )
    if calibration.fitted:
        _show_fitted(console, calibration)
    if calibration.open:
        _show_open(console, calibration)
    for doubt in _doubts(calibration):
        console.print(Text.assemble(("! ", "yellow"), plain(doubt)))
    if written:
        console.print(f"wrote {plain(str(write))} with {len(written)} of these figures", soft_wrap=True)


def _show_fitted(console: Console, calibration: Calibration) -> None:
    table = columns("fitted", "", "", "95 % interval", "document", "samples", last_ratio=False)
    for fit in calibration.fitted:
        assert fit.interval is not None
        label, unit = _LABELS[fit.figure.parameter]
        if fit.figure.cap_fraction is not None:
            label = f"speed at {100 * fit.figure.cap_fraction:.3g} % of its limit"
        present = "" if fit.figure.present is None else f"{fit.figure.present:.4g}"
        table.add_row(
            plain(fit.figure.subject),
            label,
            f"{fit.interval.estimate:.4g} {unit}".strip(),
            f"{fit.interval.low:.4g} to {fit.interval.high:.4g}",
            Text(f"{present} outside", style="yellow") if fit.present_is_outside else present,
            f"{fit.samples:,}",
        )
    console.print(table)
    for note in dict.fromkeys(f"{fit.figure.subject}: {fit.note}" for fit in calibration.fitted if fit.note):
        console.print(plain(note), style="dim")


def _show_open(console: Console, calibration: Calibration) -> None:
    """What has the same reason stands together: a hall may have a hundred loops without meters."""
    by_reason: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fit in calibration.open:
        by_reason[_LABELS[fit.figure.parameter][0], fit.reason].append(fit.figure.subject)
    table = columns("cannot tell", "of", "because")
    for (label, reason), subjects in by_reason.items():
        table.add_row(label, plain(_listed(subjects)), plain(reason))
    console.print(table)


def _doubts(calibration: Calibration) -> list[str]:
    telemetry = calibration.telemetry
    doubts = [*calibration.suspect[:_MOST_NAMED]]
    if more := calibration.suspect[_MOST_NAMED:]:
        doubts.append(f"{len(more)} more meters are set aside like this")
    if telemetry.bad:
        first = "; ".join(f"line {bad.line}: {bad.message}" for bad in telemetry.bad_lines[:3])
        doubts.append(f"{_counted(telemetry.bad, 'line')} could not be used: {first}")
    if calibration.unknown:
        readings, names = sum(calibration.unknown.values()), _listed(calibration.unknown)
        doubts.append(f"{_counted(readings, 'reading')} of what this facility lacks: {names}")
    if telemetry.repeated:
        again = _counted(telemetry.repeated, "reading")
        doubts.append(f"{again} of a moment that the same meter had told already: the last one counts")
    return doubts


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return ", ".join(known[:_MOST_NAMED]) + more
