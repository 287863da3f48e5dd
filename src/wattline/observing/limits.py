"""Limits: how near did racks, supplies and loops come to what they may carry?

Only where a facility document says which series tell of them: their names are nobody's standard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec
import numpy as np

from wattline.facility import SUBJECTS, Facility, Series, Site, Source
from wattline.observing.asking import ReadOnly
from wattline.observing.remarks import Remarks
from wattline.observing.report import Limit
from wattline.observing.window import Window
from wattline.telemetry.asking import MeterError, UnansweredError
from wattline.telemetry.labels import Labels

_BYTES_EACH_POINT, _BYTES_EACH_SERIES, _BYTES_MORE = 48, 2048, 1 << 18
_KINDS = ("rack", "supply", "loop")
_COUNTED = frozenset({"rack_watts", "supply_watts", "loop_heat_watts", "coolant_celsius"})


class _Result(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct):
    result: list[_Result]


class _Answer(msgspec.Struct):
    data: _Data


_ANSWER = msgspec.json.Decoder(_Answer)


def read_limits(
    ask: ReadOnly, facility: Facility, window: Window, ahead_seconds: float, remarks: Remarks
) -> tuple[Limit, ...]:
    """The nearest to its cap first."""
    found: list[Limit] = []
    for site in facility.sites:
        for source in site.sources:
            if source.kind != "prometheus":
                continue
            for series in source.series:
                if series.quantity not in _COUNTED:
                    continue
                try:
                    found += _read(ask, site, source, series, window, ahead_seconds)
                except UnansweredError as error:
                    remarks.note(f"racks, supplies and loops of {site.name}: {error.message}")
                    break
                except MeterError as error:
                    remarks.note(f"{series.quantity} of {site.name} is left out: {error.message}")
    return tuple(sorted(found, key=lambda limit: -(limit.peak / limit.cap if limit.cap else 0.0)))


def _read(
    ask: ReadOnly, site: Site, source: Source, series: Series, window: Window, ahead_seconds: float
) -> Iterator[Limit]:
    labels, kind = Labels(site, source.names), SUBJECTS[series.quantity]
    things = len(labels.of_kind[kind])
    first = window.begins_at + window.step_seconds + ahead_seconds
    step = f"{window.step_seconds:.0f}"
    parameters = {
        "query": f"max_over_time(({series.ask})[{step}s:])",
        "start": f"{first:.3f}",
        "end": f"{window.ends_at + ahead_seconds:.3f}",
        "step": step,
    }
    each = _BYTES_EACH_SERIES + _BYTES_EACH_POINT * window.steps
    body = ask.prometheus("/api/v1/query_range", parameters, most_bytes=_BYTES_MORE + 2 * things * each)
    try:
        results = _ANSWER.decode(body).data.result
    except msgspec.DecodeError as error:
        raise MeterError(f"no answer of a Prometheus: {str(error)[:200]}") from None
    values: dict[str, list[float]] = defaultdict(list)
    for result in results:
        name = labels.find(kind, result.metric.get(series.label, ""))
        if name is not None:
            values[name] += [float(said) * series.worth for _, said in result.values]
    caps = _caps(site)
    for name, told in values.items():
        known = np.array([value for value in told if np.isfinite(value)])
        if len(known):
            yield Limit(
                name=name,
                quantity=series.quantity,
                peak=float(known.max()),
                mean=float(known.mean()),
                cap=caps.get(name) if series.quantity.endswith("watts") else None,
                coverage=min(1.0, len(known) / window.steps),
            )


def _caps(site: Site) -> dict[str, float]:
    return {
        **{rack.name: rack.cap_watts for rack in site.racks},
        **{supply.name: supply.usable_watts for supply in site.supplies},
        **{loop.name: loop.capacity_watts for loop in site.loops},
    }
