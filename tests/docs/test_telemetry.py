"""The page about meters: its example is read by the real reader, its table of series is the one in force."""

from __future__ import annotations

import re
from pathlib import Path

from wattline.spec import FacilityDocument, build_facility, parse_document
from wattline.spec.telemetry import DCGM

TEXT = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text(encoding="utf-8")


def test_the_example_is_a_facility_whose_racks_supplies_and_loop_are_metered() -> None:
    (source,) = re.findall(r"^```yaml facility\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    document = parse_document(source.encode(), FacilityDocument, file="facility.yaml")
    (site,) = build_facility(document).sites
    assert site.is_metered("zurich/r2", "rack_watts")
    assert site.is_metered("zurich/pdu-2", "supply_watts")
    assert not site.is_metered("zurich/feed-a", "supply_watts")
    assert site.is_metered("zurich/cdu-1", "loop_heat_watts")
    assert site.sources[2].targets == {"zurich/pdu-1": "10.20.0.41", "zurich/pdu-2": "10.20.0.42"}
    assert site.caps_power


def test_the_series_that_are_asked_for_are_those_in_the_table() -> None:
    rows = re.findall(r"^\| `(gpu_\w+)` \| `(DCGM_\w+)` \| (\w+) \|$", TEXT, re.MULTILINE)
    assert {quantity: (query, unit) for quantity, query, unit in rows} == DCGM
