"""What a site stands in: weather, price and carbon by the hour, and what its cooling makes of them."""

from wattline.twin.surroundings.series import Constant, HourlySeries
from wattline.twin.surroundings.shifted import Change, Shifted
from wattline.twin.surroundings.site import (
    HourlySurroundings,
    Integral,
    SeriesPaths,
    SeriesSource,
    Surroundings,
    surroundings_by_site,
    surroundings_of,
)

__all__ = [
    "Change",
    "Constant",
    "HourlySeries",
    "HourlySurroundings",
    "Integral",
    "SeriesPaths",
    "SeriesSource",
    "Shifted",
    "Surroundings",
    "surroundings_by_site",
    "surroundings_of",
]
