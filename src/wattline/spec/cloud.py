"""A cloud region in `facility.yaml`: whose machines are they, what do they cost, may they be taken back?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, model_validator

from wattline.facility import Cloud, CoolingKind, Device, Loop, Node, Rack, Site, Storage, Supply
from wattline.spec.document import Document
from wattline.spec.flaws import Flaw, FlawedError
from wattline.spec.quantities import Fraction, Name, Number, RelativePath, Seconds, Watts, Whole
from wattline.spec.site import Carbon, NotNegativeUsd, StorageDocument

# What a provider takes care of carries everything at once many times over, and never gets warm.
_AMPLE = 10.0
_LEAST_WATTS = 1e6
_SUPPLY_CELSIUS, _APPROACH_KELVIN, _TIME_CONSTANT_SECONDS = 20.0, 1.0, 15.0
_STORAGE_BYTES_PER_SECOND = 10e9
_PART = "provider"


class Instance(Document):
    """The one kind of machine that a region is asked for; another kind, or another price, is another site."""

    gpu: Name
    gpus: Annotated[Whole, Field(ge=1, le=1024)]
    cpus: Annotated[Whole, Field(ge=1, le=4096)] = 96
    other: Watts = 0.0  # beside its GPUs, for its carbon


class SpotDocument(Document):
    """Machines that cost less and may be taken back."""

    price: NotNegativeUsd  # per GPU-hour, until its market says another
    reclaim: Annotated[Number, Field(ge=0, le=100)]  # how often a machine is taken back, per hour and GPU
    notice: Seconds = 120.0
    back_after: Annotated[Seconds, Field(gt=0)] = 3600.0
    varies: Annotated[Fraction, Field(ge=0, le=1)] = 0.0
    series: RelativePath | None = None


class CloudDocument(Document):
    instance: Instance
    max_gpus: Annotated[Whole, Field(ge=1, le=1_000_000)]
    price: NotNegativeUsd | None = None  # on demand, per GPU-hour
    spot: SpotDocument | None = None
    egress: NotNegativeUsd = 0.0  # per GB that leaves it

    @model_validator(mode="after")
    def _makes_sense(self) -> CloudDocument:
        flaws = list(self._flaws())
        if flaws:
            raise FlawedError(flaws)
        return self

    def _flaws(self) -> Iterator[Flaw]:
        if self.price is None and self.spot is None:
            yield Flaw(at=(), message="say what a GPU-hour costs: price, or spot with its own")
        if self.price is not None and self.spot is not None and self.spot.price > self.price:
            yield Flaw(
                at=("spot", "price"),
                message="spot costs more than the same machine on demand; leave spot out",
                value=f"{self.spot.price:g}",
                allowed=f"at most {self.price:g}",
            )
        if self.max_gpus % self.instance.gpus:
            whole = self.max_gpus // self.instance.gpus * self.instance.gpus
            yield Flaw(
                at=("max_gpus",),
                message="machines are rented whole",
                value=str(self.max_gpus),
                allowed=f"a multiple of {self.instance.gpus}, such as {whole or self.instance.gpus}",
            )


class CloudSiteDocument(Document):
    """It has no feeds, loops or racks of ours: power and cooling are in its price."""

    region: Name
    cloud: CloudDocument
    carbon: Carbon | None = None  # counts nothing, unless said
    storage: StorageDocument = StorageDocument(throughput=f"{_STORAGE_BYTES_PER_SECOND!r}B/s")


def build_cloud_site(name: str, document: CloudSiteDocument, device: Device) -> Site:
    """One rack of machines, as many as may be rented, under a supply and a loop that never bind."""
    cloud, instance, spot = document.cloud, document.cloud.instance, document.cloud.spot
    price = spot.price if spot is not None else cloud.price
    assert price is not None  # the document says one of them
    rented = Device(**{field: getattr(device, field) for field in device.__slots__} | {"usd_per_hour": price})
    nodes = tuple(
        Node(
            name=f"{name}/{_PART}-n{number}",
            rack=f"{name}/{_PART}",
            device=rented,
            gpus=instance.gpus,
            cpus=instance.cpus,
            other_watts=instance.other,
        )
        for number in range(1, cloud.max_gpus // instance.gpus + 1)
    )
    watts = max(_LEAST_WATTS, _AMPLE * sum(node.nameplate_watts for node in nodes))
    carbon = document.carbon
    return Site(
        name=name,
        region=document.region,
        supplies=(Supply(name=f"{name}/{_PART}-power", rating_watts=watts, continuous_fraction=1.0),),
        loops=(
            Loop(
                name=f"{name}/{_PART}-cooling",
                kind=CoolingKind.DIRECT_TO_CHIP,
                capacity_watts=watts,
                supply_celsius=_SUPPLY_CELSIUS,
                approach_kelvin=_APPROACH_KELVIN,
                time_constant_seconds=_TIME_CONSTANT_SECONDS,
            ),
        ),
        racks=(
            Rack(
                name=f"{name}/{_PART}",
                row=f"{name}/{_PART}",
                cap_watts=watts,
                supplies=(f"{name}/{_PART}-power",),
                redundant=False,
                loop=f"{name}/{_PART}-cooling",
                switch=f"{name}/{_PART}",
                nodes=nodes,
            ),
        ),
        storage=Storage(
            name=f"{name}/{document.storage.name}",
            throughput_bytes_per_second=document.storage.throughput,
            capacity_bytes=document.storage.capacity,
            usd_per_gigabyte_month=document.storage.price,
        ),
        usd_per_kwh=0.0,
        carbon_zone=carbon.zone if carbon is not None else "",
        grams_co2_per_kwh=carbon.intensity if carbon is not None else 0.0,
        pue=1.0,
        telemetry="none",
        caps_power=False,
        engine="local",
        carbon_series=(carbon.series or "") if carbon is not None else "",
        cloud=Cloud(
            max_gpus=cloud.max_gpus,
            usd_per_gpu_hour=price,
            most_usd_per_gpu_hour=cloud.price,
            usd_per_gigabyte_out=cloud.egress,
            reclaims_per_gpu_hour=spot.reclaim if spot is not None else 0.0,
            notice_seconds=spot.notice if spot is not None else 0.0,
            back_seconds=spot.back_after if spot is not None else 3600.0,
            varies_fraction=spot.varies if spot is not None else 0.0,
            price_series=(spot.series or "") if spot is not None else "",
        ),
    )


def write_cloud_site(site: Site) -> dict[str, Any]:
    """The fields of a CloudSiteDocument."""
    cloud, node, storage = site.cloud, site.racks[0].nodes[0], site.storage
    assert cloud is not None
    assert node.device is not None
    is_spot = cloud.most_usd_per_gpu_hour != cloud.usd_per_gpu_hour or cloud.notice_seconds > 0.0
    spot = {
        "price": cloud.usd_per_gpu_hour,
        "reclaim": cloud.reclaims_per_gpu_hour,
        "notice": f"{cloud.notice_seconds!r}s",
        "back_after": f"{cloud.back_seconds!r}s",
        "varies": cloud.varies_fraction,
        "series": cloud.price_series or None,
    }
    carbon = {
        "zone": site.carbon_zone,
        "intensity": site.grams_co2_per_kwh,
        "series": site.carbon_series or None,
    }
    return {
        "region": site.region,
        "cloud": {
            "instance": {
                "gpu": node.device.name,
                "gpus": node.gpus,
                "cpus": node.cpus,
                "other": f"{node.other_watts!r}W",
            },
            "max_gpus": cloud.max_gpus,
            "price": cloud.most_usd_per_gpu_hour if is_spot else cloud.usd_per_gpu_hour,
            "spot": spot if is_spot else None,
            "egress": cloud.usd_per_gigabyte_out,
        },
        "carbon": carbon if site.carbon_zone else None,
        "storage": {
            "name": storage.name.removeprefix(f"{site.name}/"),
            "throughput": f"{storage.throughput_bytes_per_second!r}B/s",
            "capacity": None if storage.capacity_bytes is None else f"{storage.capacity_bytes!r}B",
            "price": storage.usd_per_gigabyte_month,
        },
    }
