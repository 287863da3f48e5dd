"""Results: what did the run find, in numbers that a gate can read; and with which parameters?"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from wattline.train.errors import ScriptError

Number = bool | int | float
NOT_FINITE = "not_finite"
_MAX_FILE_BYTES = 2**20


def params(default: str | Path = "params.json") -> dict[str, Any]:
    """The parameters of this run: the file that `WATTLINE_PARAMS` names, otherwise the script's own."""
    path = Path(os.environ.get("WATTLINE_PARAMS") or default)
    try:
        return _read_object(path)
    except FileNotFoundError as error:
        raise ScriptError(f"{path}: there are no parameters here", hint="write {} for none") from error


def plain_numbers(values: Mapping[str, Any]) -> dict[str, Number]:
    """NumPy's scalars as Python's own, so that JSON can hold them."""
    plain: dict[str, Number] = {}
    for name, value in values.items():
        number = value
        if hasattr(value, "item"):
            with suppress(ValueError, RuntimeError):  # more than one element: refused below
                number = value.item()
        if not isinstance(number, bool | int | float):
            raise ScriptError(f"metric {name!r} is a {type(value).__qualname__}", hint="give one number")
        plain[name] = number
    return plain


def finite(values: Mapping[str, Number]) -> tuple[dict[str, Number | None], list[str]]:
    """JSON has no nan and no infinity: they become null, and are named."""
    lost = sorted(name for name, value in values.items() if not math.isfinite(value))
    return {name: None if name in lost else value for name, value in values.items()}, lost


def merge_metrics(out: Path, values: Mapping[str, Number]) -> dict[str, Any]:
    """Add to `metrics.json` in one atomic step; what earlier phases wrote stays."""
    if NOT_FINITE in values:
        raise ScriptError(f"a metric cannot be called {NOT_FINITE!r}", hint="choose another name")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "metrics.json"
    try:
        merged = _read_object(path)
    except FileNotFoundError:
        merged = {}
    fresh, _ = finite(values)
    merged.update(fresh)
    merged.pop(NOT_FINITE, None)
    if lost := sorted(name for name, value in merged.items() if value is None):
        merged[NOT_FINITE] = lost
    temporary = out / f".metrics-{os.getpid()}.json"
    temporary.write_text(json.dumps(merged, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    temporary.replace(path)
    return merged


def _read_object(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        raw = file.read(_MAX_FILE_BYTES + 1)
    try:
        document = json.loads(raw) if len(raw) <= _MAX_FILE_BYTES else None
    except (ValueError, RecursionError) as error:
        raise ScriptError(f"{path}: is not JSON: {error}", hint="write one JSON object") from error
    if not isinstance(document, dict):
        raise ScriptError(f"{path}: is not one JSON object of up to {_MAX_FILE_BYTES} bytes")
    return document
