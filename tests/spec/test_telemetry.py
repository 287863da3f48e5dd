"""Telemetry and power caps of a site: what is refused, with the words a person reads."""

from __future__ import annotations

from typing import Any

import pytest

from metering import a_hall
from wattline.errors import DocumentError
from wattline.spec import FacilityDocument, build_facility
from wattline.spec.facility_write import write_facility

PROMETHEUS: dict[str, Any] = {"source": "prometheus", "url": "http://p:9090"}
SNMP: dict[str, Any] = {
    "source": "snmp",
    "targets": {"feed-a": "10.0.0.1"},
    "series": {"supply_watts": {"oid": "1.3.6.1"}},
}
REDFISH: dict[str, Any] = {"source": "redfish", "targets": {"cdu-1": "https://10.0.0.1"}}


@pytest.mark.parametrize(
    ("telemetry", "words"),
    [
        ([{"source": "prometheus"}], "telemetry from prometheus says its url"),
        ([{**PROMETHEUS, "url": "ftp://p"}], "a URL begins with http:// or https://"),
        ([{**PROMETHEUS, "url": "http://p:x"}], "the port of a URL is a number from 0 to 65535"),
        ([{**PROMETHEUS, "url": "http://me:secret@p"}], "secrets go into secret_file"),
        ([{**PROMETHEUS, "time_scale": 2}], "only emulated telemetry has a time_scale"),
        ([{**PROMETHEUS, "targets": {"r1": "10.0.0.1"}}], "telemetry from prometheus has no targets"),
        ([{"source": "nvml", "url": "http://p"}], "telemetry from nvml has no url"),
        ([{**PROMETHEUS, "secret_file": "token"}], "this path is absolute"),
        ([{**PROMETHEUS, "every": "0.1s"}], "this is too small"),
        ([{**PROMETHEUS, "series": {"rack_wats": {"query": "x"}}}], "a series is one of gpu_watts"),
        ([{**PROMETHEUS, "series": {"rack_watts": {"oid": "1.3.6"}}}], "says its query, and nothing else"),
        ([{**PROMETHEUS, "series": {"rack_watts": {"query": "x", "unit": "C"}}}], "comes in W, kW, MW, mW"),
        ([{**PROMETHEUS, "series": {"rack_watts": {"query": "x", "label": "a-b"}}}], "a label is letters"),
        (
            [{**PROMETHEUS, "series": {"rack_watts": {"query": "x", "scale": 0}}}],
            "this is too small, got 0; allowed: more than 0.0",
        ),
        (
            [{**PROMETHEUS, "names": {"dgx-1": "r9-n1"}}],
            "there is no node, rack, supply or loop of this name",
        ),
        ([{**PROMETHEUS, "names": {"a1..a3": "r1-n1..r1-n2"}}], "stand for different numbers of names"),
        ([{**PROMETHEUS, "names": {"a1..a999999999": "r1-n1"}}], "a range holds at most"),
        ([{**SNMP, "series": {}}], "telemetry from snmp says its series"),
        ([{**SNMP, "targets": {}}], "telemetry from snmp says its targets"),
        ([{**SNMP, "targets": {"feed-a": "10.0.0.1:x"}}], "an SNMP target is host or host:port"),
        (
            [{**SNMP, "targets": {"feed-b": "10.0.0.1"}}],
            "there is no node, rack, supply or loop of this name",
        ),
        ([{**SNMP, "series": {"gpu_watts": {"oid": "1.3.6.1"}}}], "SNMP tells of nodes, racks, supplies"),
        ([{**SNMP, "series": {"rack_watts": {"oid": "1.03.6"}}}], "an OID is written in digits"),
        ([{**REDFISH, "targets": {"cdu-1": "10.0.0.1"}}], "a URL begins with http:// or https://"),
        ([PROMETHEUS, {"source": "emulated"}], "telemetry that is emulated stands alone"),
        ([{"source": "none"}, REDFISH], "telemetry that is none stands alone"),
        ([], "at least 1"),
    ],
)
def test_what_cannot_be_is_refused_in_words(telemetry: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        a_hall(*telemetry)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("caps", "words"),
    [
        ({"by": "helper"}, "caps by helper say their command"),
        ({"by": "helper", "command": ["x"], "targets": {"r1-n1": "https://a"}}, "no targets"),
        ({"by": "redfish"}, "caps by redfish say their targets"),
        ({"by": "redfish", "targets": {"r1": "https://a"}}, "there is no node of this name"),
        ({"by": "magic", "command": ["x"]}, "helper"),
    ],
)
def test_caps_that_cannot_be_are_refused_in_words(caps: dict[str, Any], words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        a_hall(PROMETHEUS, power_caps=caps)
    assert words in str(caught.value)


def test_emulated_gpus_can_always_be_capped_and_need_no_caps() -> None:
    (site,) = a_hall({"source": "emulated"}).sites
    assert site.caps_power
    with pytest.raises(DocumentError, match="leave power_caps out"):
        a_hall({"source": "emulated"}, power_caps={"by": "helper", "command": ["x"]})
    (real,) = a_hall(PROMETHEUS).sites
    assert not real.caps_power


def test_what_is_written_stands_for_the_same_sources_and_caps() -> None:
    series = {"rack_watts": {"query": "pdu", "unit": "kW", "label": "rack_name"}, "gpu_joules": None}
    caps = {"by": "redfish", "targets": {"r1-n1..r1-n2": "https://10.0.1.{}"}, "secret_file": "/etc/s"}
    names = {"dgx-1..dgx-2": "r1-n1..r1-n2"}
    facility = a_hall({**PROMETHEUS, "series": series, "names": names}, SNMP, REDFISH, power_caps=caps)
    assert build_facility(FacilityDocument.model_validate(write_facility(facility))) == facility
    (site,) = facility.sites
    assert site.power_caps is not None
    assert site.power_caps.targets == {"zurich/r1-n1": "https://10.0.1.1", "zurich/r1-n2": "https://10.0.1.2"}
    assert "gpu_joules" not in {one.quantity for one in site.sources[0].series}
