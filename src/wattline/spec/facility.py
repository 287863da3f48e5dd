"""`facility.yaml`: all that exists, written so that thousands of GPUs stay readable."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from pydantic import Field, model_validator

from wattline.facility import DEVICES, Device
from wattline.spec.document import Document
from wattline.spec.facility_checks import flaws_of, overloads_of
from wattline.spec.flaws import MOST_FLAWS, FlawedError
from wattline.spec.quantities import Name
from wattline.spec.site import DeviceDocument, LinkDocument, SiteDocument


class FacilityDocument(Document):
    facility: Name
    devices: Annotated[dict[Name, DeviceDocument], Field(max_length=1000)] = Field(default_factory=dict)
    sites: Annotated[dict[Name, SiteDocument], Field(min_length=1, max_length=1000)]
    links: Annotated[tuple[LinkDocument, ...], Field(max_length=10_000)] = ()

    def known_devices(self) -> dict[str, Device]:
        """The GPUs it may name: those that ship, and its own over them."""
        return DEVICES | {name: document.device(name) for name, document in self.devices.items()}

    @model_validator(mode="after")
    def _holds_together(self) -> FacilityDocument:
        devices = self.known_devices()
        flaws = list(islice(flaws_of(self.sites, self.links, devices), MOST_FLAWS))
        flaws = flaws or list(islice(overloads_of(self.sites, devices), MOST_FLAWS))
        if flaws:
            raise FlawedError(flaws)
        return self
