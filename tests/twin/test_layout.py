from __future__ import annotations

import pytest

from building import a_device, a_site
from wattline.facility import Facility
from wattline.state import Plant
from wattline.twin.layout import MOST_PLACES, layout_of


def test_feeds_have_a_column_each_and_racks_have_their_throttle_limit() -> None:
    site = a_site(
        "zurich", racks=2, nodes=2, device=a_device(throttle_celsius=83.0), feeds_watts=(10e3, 20e3)
    )
    plant = Plant(Facility(name="lab", sites=(site,)))
    layout = layout_of(plant)
    assert layout.sites == ("zurich",)
    assert [feed.cap_watts for feed in layout.feeds] == [supply.usable_watts for supply in site.supplies]
    assert [plant.resources[feed.resource].name for feed in layout.feeds] == [
        each.name for each in layout.feeds
    ]
    assert layout.feed_of_resource == {feed.resource: at for at, feed in enumerate(layout.feeds)}
    assert [place.throttle_celsius for place in layout.places] == [83.0, 83.0]
    assert layout.place_of_node == (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("racks", "kind", "places"), [(MOST_PLACES, "rack", MOST_PLACES), (MOST_PLACES + 1, "loop", 1)]
)
def test_a_large_facility_is_told_by_loop(racks: int, kind: str, places: int) -> None:
    layout = layout_of(Plant(Facility(name="big", sites=(a_site("zurich", racks=racks, nodes=1),))))
    assert layout.place_kind == kind
    assert len(layout.places) == places
    assert len(layout.place_of_node) == racks
