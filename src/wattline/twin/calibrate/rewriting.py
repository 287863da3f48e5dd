"""Rewriting: how do fitted figures get into a facility document without disturbing what people wrote?

A diff shows the figures and nothing else, and a comment at the top what they rest on. The result is read
again: it must say what it said before, but for these figures, and be a facility that holds together.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import yaml

from wattline.errors import DocumentError, RefusedError
from wattline.facility import Device
from wattline.spec import FacilityDocument, parse_document
from wattline.spec.source import parse_source
from wattline.twin.calibrate.calibration import Calibration
from wattline.twin.calibrate.editing import Path, edit
from wattline.twin.calibrate.fit import Fit

_BOM = "\ufeff"
_UNITS = {"idle": "W", "approach": "K", "time_constant": "s"}


def rewrite_facility(
    raw: bytes, calibration: Calibration, *, at: float, file: str
) -> tuple[bytes, tuple[Fit, ...]]:
    """The document with all figures it has fields for, and which those are; `raw` must be a good one."""
    chosen = _choose(calibration)
    if not chosen:
        raise RefusedError("nothing was fitted that a facility document has a field for")
    document = parse_document(raw, FacilityDocument, file=file)
    before = parse_source(raw, file).value
    changes = _changes(before, chosen, document.known_devices())
    text = raw.decode("utf-8")
    bom, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    try:
        result = (bom + _header(calibration, chosen, at) + edit(text, changes)).encode()
        same = parse_source(result, file).value == _expected(before, changes)
    except (yaml.YAMLError, DocumentError):
        same = False
    if not same:
        raise RefusedError(
            f"{file}: is laid out in a way that cannot be edited safely", hint=_by_hand(chosen)
        )
    try:
        parse_document(result, FacilityDocument, file=file)
    except DocumentError as error:
        raise RefusedError(f"with the fitted figures it no longer holds together: {error}") from error
    return result, tuple(chosen.values())


def _choose(calibration: Calibration) -> dict[Path, Fit]:
    """Where two cooling kinds share a field, the hotter one is written: it errs on the safe side."""
    chosen: dict[Path, Fit] = {}
    for fit in calibration.fitted:
        assert fit.interval is not None
        known = chosen.get(fit.figure.path)
        if fit.figure.path and (known is None or fit.interval.estimate > _estimate(known)):
            chosen[fit.figure.path] = fit
    return chosen


def _estimate(fit: Fit) -> float:
    assert fit.interval is not None
    return fit.interval.estimate


def _written(fit: Fit) -> str:
    unit = _UNITS.get(fit.figure.path[-1], "")
    return f"{_estimate(fit):.4g}{unit}"


def _changes(before: Any, chosen: Mapping[Path, Fit], devices: Mapping[str, Device]) -> dict[Path, str]:
    """Which scalars to write where; a GPU model that ships is written out whole, because it has to be."""
    changes: dict[Path, str] = {}
    for path, fit in chosen.items():
        if path[0] == "devices" and path[1] not in before.get("devices", {}):
            for key, value in _whole_device(devices[path[1]]).items():
                changes.setdefault((*path[:2], key), value)
        changes[path] = _written(fit)
    return changes


def _whole_device(device: Device) -> dict[str, str]:
    return {
        "limit": f"{device.limit_watts:g}W",
        "least_limit": f"{device.least_limit_watts:g}W",
        "idle": f"{device.idle_watts:g}W",
        "throttle": f"{device.throttle_celsius:g}C",
        "slowdown": f"{device.slowdown_celsius:g}C",
        "shutdown": f"{device.shutdown_celsius:g}C",
        "kelvin_per_watt_air": f"{device.kelvin_per_watt_air:g}",
        "kelvin_per_watt_liquid": f"{device.kelvin_per_watt_liquid:g}",
        "usd_per_hour": f"{device.usd_per_hour:g}",
        "sure": device.sure,
    }


def _expected(before: Any, changes: Mapping[Path, str]) -> Any:
    expected = copy.deepcopy(before)
    for path, written in changes.items():
        inner = expected
        for step in path[:-1]:
            inner = inner.setdefault(step, {})
        inner[path[-1]] = parse_source(written.encode(), "value").value
    return expected


def _header(calibration: Calibration, chosen: Mapping[Path, Fit], at: float) -> str:
    day = datetime.fromtimestamp(at, UTC).date().isoformat()
    readings = f"{calibration.telemetry.readings:,} readings in {calibration.telemetry.source}"
    lines = [f"# Calibrated on {day} from {readings}; 95 % intervals:"]
    for path, fit in chosen.items():
        assert fit.interval is not None
        was = "" if fit.figure.present is None else f", was {fit.figure.present:.4g}"
        span = f"{fit.interval.low:.4g} to {fit.interval.high:.4g}"
        lines.append(f"#   {'.'.join(path)}: {_written(fit)} ({span}{was}; {fit.samples:,} samples)")
    return "\n".join(lines) + "\n"


def _by_hand(chosen: Mapping[Path, Fit]) -> str:
    return "write by hand: " + "; ".join(f"{'.'.join(path)}: {_written(fit)}" for path, fit in chosen.items())
