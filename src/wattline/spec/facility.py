"""`facility.yaml`: all that exists, written so that thousands of GPUs stay readable."""

from __future__ import annotations

from itertools import chain, islice
from typing import Annotated

from pydantic import Discriminator, Field, Tag, model_validator

from wattline.facility import DEVICES, Device
from wattline.spec.cloud import CloudSiteDocument
from wattline.spec.document import Document
from wattline.spec.facility_checks import cloud_flaws_of, flaws_of, overloads_of
from wattline.spec.flaws import MOST_FLAWS, FlawedError
from wattline.spec.quantities import Name
from wattline.spec.site import DeviceDocument, LinkDocument, SiteDocument


def _kind_of_site(site: object) -> str:
    is_cloud = "cloud" in site if isinstance(site, dict) else isinstance(site, CloudSiteDocument)
    return "[cloud]" if is_cloud else "[hall]"


AnySite = Annotated[
    Annotated[SiteDocument, Tag("[hall]")] | Annotated[CloudSiteDocument, Tag("[cloud]")],
    Discriminator(_kind_of_site),
]


class FacilityDocument(Document):
    facility: Name
    devices: Annotated[dict[Name, DeviceDocument], Field(max_length=1000)] = Field(default_factory=dict)
    sites: Annotated[dict[Name, AnySite], Field(min_length=1, max_length=1000)]
    links: Annotated[tuple[LinkDocument, ...], Field(max_length=10_000)] = ()

    def known_devices(self) -> dict[str, Device]:
        """The GPUs it may name: those that ship, and its own over them."""
        return DEVICES | {name: document.device(name) for name, document in self.devices.items()}

    @property
    def halls(self) -> dict[str, SiteDocument]:
        return {name: site for name, site in self.sites.items() if isinstance(site, SiteDocument)}

    @property
    def clouds(self) -> dict[str, CloudSiteDocument]:
        return {name: site for name, site in self.sites.items() if isinstance(site, CloudSiteDocument)}

    @model_validator(mode="after")
    def _holds_together(self) -> FacilityDocument:
        devices, halls = self.known_devices(), self.halls
        found = chain(
            flaws_of(halls, self.links, devices, self.sites), cloud_flaws_of(self.clouds, self.links, devices)
        )
        flaws = list(islice(found, MOST_FLAWS))
        flaws = flaws or list(islice(overloads_of(halls, devices), MOST_FLAWS))
        if flaws:
            raise FlawedError(flaws)
        return self
