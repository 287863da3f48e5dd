"""Readers: one for each source of each real site, and none where meters are emulated."""

from __future__ import annotations

import json
import math
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from building import a_facility, a_site
from metering import a_hall
from wattline.telemetry import readers_of
from wattline.telemetry.asking import MeterError
from wattline.telemetry.prometheus import PrometheusSource


def test_each_source_of_a_site_has_a_reader() -> None:
    facility = a_hall(
        {"source": "prometheus", "url": "http://127.0.0.1:9"},
        {"source": "nvml"},
        {"source": "host"},
        {"source": "redfish", "targets": {"cdu-1": "http://127.0.0.1:9"}},
        {"source": "snmp", "targets": {"r1": "127.0.0.1:9"}, "series": {"rack_watts": {"oid": "1.3.6.1"}}},
    )
    listeners = readers_of(facility)
    assert [source.kind for source in listeners._sources] == ["prometheus", "nvml", "host", "redfish", "snmp"]
    assert [source.every_seconds for source in listeners._sources] == [10.0, 1.0, 10.0, 10.0, 10.0]
    for source in listeners._sources:
        source.close()


def test_where_meters_are_emulated_nobody_is_asked() -> None:
    assert not readers_of(a_facility(a_site(telemetry="emulated"), a_site("paris", telemetry="none")))


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_LABELS = st.dictionaries(
    st.sampled_from(["Hostname", "gpu", "job"]), st.sampled_from(["r1-n1", "0", "1", "x", ""]) | _SCALARS
)
_SAMPLES = st.lists(
    st.tuples(st.floats() | st.integers(), st.sampled_from(["300", "NaN", "1e400"]) | _SCALARS) | _SCALARS
)
_SERIES = st.fixed_dictionaries(
    {"metric": _LABELS}, optional={"values": _SAMPLES, "value": _SAMPLES | _SCALARS}
)


@settings(max_examples=300)
@given(st.lists(_SERIES | _SCALARS, max_size=6))
def test_whatever_a_prometheus_answers_only_plausible_readings_come_of_it(result: list[object]) -> None:
    (site,) = a_hall({"source": "prometheus", "url": "http://p"}).sites
    source = PrometheusSource(site, site.sources[0])
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
    now = 1_800_000_000.0
    try:
        readings = source.take(site.sources[0].series[0], body, now)
    except MeterError:
        return
    for reading in readings:
        assert math.isfinite(reading.value)
        assert 0.0 <= reading.value <= 1100.0
        assert now - 30.0 <= reading.at <= now


@given(st.binary(max_size=200))
def test_bytes_that_are_no_answer_are_refused(body: bytes) -> None:
    (site,) = a_hall({"source": "prometheus", "url": "http://p"}).sites
    source = PrometheusSource(site, site.sources[0])
    with suppress(MeterError):
        assert source.take(site.sources[0].series[0], body, 0.0) == []
