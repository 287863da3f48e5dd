from __future__ import annotations

from dataclasses import replace

import pytest

from wattline.facility import Normals, Site
from wattline.spec import FacilityDocument, build_facility, read_facility, shipped_facilities
from wattline.spec.facility_write import write_facility


@pytest.mark.parametrize("name", shipped_facilities())
def test_what_is_written_stands_for_the_same_facility(name: str) -> None:
    facility = read_facility(name)
    assert build_facility(FacilityDocument.model_validate(write_facility(facility))) == facility


def test_prices_and_series_of_a_site_are_written() -> None:
    facility = read_facility("lab")
    changed = replace(facility, sites=tuple(_dearer(site) for site in facility.sites))
    assert build_facility(FacilityDocument.model_validate(write_facility(changed))) == changed


def test_normals_of_a_site_are_written() -> None:
    facility = read_facility("lab")
    normals = Normals(
        january_celsius=-9.5, july_celsius=16.0, swing_kelvin=8.0, humidity=0.7, warmest_hour=13
    )
    sites = tuple(replace(site, weather_normals=normals) for site in facility.sites)
    changed = replace(facility, sites=sites)
    assert build_facility(FacilityDocument.model_validate(write_facility(changed))) == changed


def _dearer(site: Site) -> Site:
    """Each site with a price of its own for the same GPU."""
    racks = []
    for rack in site.racks:
        nodes = []
        for node in rack.nodes:
            assert node.device is not None
            nodes.append(replace(node, device=replace(node.device, usd_per_hour=len(site.name) / 3)))
        racks.append(replace(rack, nodes=tuple(nodes)))
    return replace(
        site, racks=tuple(racks), price_series="p.csv", carbon_series="c.csv", weather_series="w.json"
    )
