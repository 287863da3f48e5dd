"""The parts of a `facility.yaml`: devices, feeds, loops, racks and links, as people write them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from wattline.facility import CoolingKind, Device, Normals, TrafficClass
from wattline.spec.document import Document
from wattline.spec.quantities import (
    BitsPerSecond,
    Bytes,
    BytesPerSecond,
    Celsius,
    Flag,
    Fraction,
    Kelvin,
    LitresPerMinute,
    Name,
    Number,
    RelativePath,
    Seconds,
    Usd,
    Watts,
    WattsPerMinute,
    Whole,
)
from wattline.spec.ranges import check_name_or_range, names_in
from wattline.spec.slurm import SlurmDocument
from wattline.spec.starts import StartsDocument
from wattline.spec.telemetry import PowerCapsDocument, Telemetry

MoreWatts = Annotated[Watts, Field(gt=0)]
SomeSeconds = Annotated[Seconds, Field(gt=0)]
NotNegativeUsd = Annotated[Usd, Field(ge=0)]
MonthlyMean = Annotated[Celsius, Field(ge=-60, le=60)]  # nowhere on Earth is colder or hotter for a month
KelvinPerWatt = Annotated[Number, Field(gt=0, le=10)]
NameOrRange = Annotated[str, AfterValidator(check_name_or_range)]


def _written_number(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _one_or_many(value: object) -> object:
    return [value] if isinstance(value, dict) else value


def _one_name_or_many(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _check_outlook_path(value: str) -> str:
    """What fetches prices writes where it may: anywhere, or into the state folder."""
    if not 1 <= len(value) <= 1024 or not value.isprintable():
        raise ValueError("a path has 1 to 1024 characters, none of them for control or direction")
    if value.startswith("~") or ".." in value.split("/"):
        raise ValueError("a path is absolute, or leads into the state folder: no ~ and no ..")
    return value


RowName = Annotated[Name, BeforeValidator(_written_number)]  # rows are often just numbered


class DeviceDocument(Document):
    """A GPU model that is not known yet, or one whose figures were measured here."""

    limit: MoreWatts
    least_limit: MoreWatts
    idle: Watts
    throttle: Celsius
    slowdown: Celsius
    shutdown: Celsius
    kelvin_per_watt_air: KelvinPerWatt
    kelvin_per_watt_liquid: KelvinPerWatt
    usd_per_hour: NotNegativeUsd
    sure: Literal["measured", "secondary", "assumed"] = "assumed"

    @model_validator(mode="after")
    def _in_order(self) -> DeviceDocument:
        if not self.idle <= self.limit or not self.least_limit <= self.limit:
            raise ValueError("a device's idle draw and least limit are at most its limit")
        if not self.throttle <= self.slowdown <= self.shutdown:
            raise ValueError("a device throttles before it slows down, and slows down before it shuts down")
        return self

    def device(self, name: str) -> Device:
        return Device(
            name=name,
            limit_watts=self.limit,
            least_limit_watts=self.least_limit,
            idle_watts=self.idle,
            throttle_celsius=self.throttle,
            slowdown_celsius=self.slowdown,
            shutdown_celsius=self.shutdown,
            kelvin_per_watt_air=self.kelvin_per_watt_air,
            kelvin_per_watt_liquid=self.kelvin_per_watt_liquid,
            usd_per_hour=self.usd_per_hour,
            sure=self.sure,
        )


class Tariff(Document):
    energy: Usd  # per kWh; below zero when the grid pays
    series: RelativePath | None = None  # the same by hour, for the twin


class Carbon(Document):
    zone: Name
    intensity: Annotated[Number, Field(ge=0, le=5000)]  # gCO2e per kWh
    series: RelativePath | None = None  # the same by hour, for the twin


class NormalsDocument(Document):
    """What a climate table says of a place, where nobody has its hours."""

    january: MonthlyMean  # the mean of the month, day and night
    july: MonthlyMean
    swing: Annotated[Kelvin, Field(ge=0, le=40)] = 8.0  # from the coldest hour of a day to the warmest
    humidity: Annotated[Fraction, Field(gt=0)] = 0.7  # relative, at the mean of the day
    warmest_hour: Annotated[Whole, Field(ge=0, le=23)] = 14  # of UTC

    def build(self) -> Normals:
        return Normals(
            january_celsius=self.january,
            july_celsius=self.july,
            swing_kelvin=self.swing,
            humidity=self.humidity,
            warmest_hour=self.warmest_hour,
        )


class WeatherDocument(Document):
    series: RelativePath | None = None
    normals: NormalsDocument | None = None  # where there is no series

    @model_validator(mode="after")
    def _one_of_both(self) -> WeatherDocument:
        if (self.series is None) == (self.normals is None):
            raise ValueError("weather is a series or normals; say one of them")
        return self


class OutlookDocument(Document):
    """Where the hours ahead of a site's grid are told while it runs."""

    file: Annotated[str, AfterValidator(_check_outlook_path)]


class FeedDocument(Document):
    rating: MoreWatts
    continuous: Annotated[Fraction, Field(gt=0)] = 0.8
    overload: Annotated[Number, Field(ge=1, le=10)] = 1.2
    overload_for: Seconds = 60.0
    ramp: Annotated[WattsPerMinute, Field(gt=0)] | None = None  # its load may not rise quicker than this
    swing: MoreWatts | None = None  # the most that work in step may swing its load by
    swing_period: Seconds = 0.1  # a quicker swing does not reach it


class PduDocument(FeedDocument):
    feed: Name


class LoopDocument(Document):
    kind: CoolingKind
    capacity: MoreWatts
    supply: Celsius
    approach: Annotated[Kelvin, Field(gt=0)] | None = None  # by kind, unless said
    time_constant: SomeSeconds | None = None
    flow: Annotated[LitresPerMinute, Field(gt=0)] | None = None


class NodesDocument(Document):
    """A number of like machines."""

    count: Annotated[Whole, Field(ge=1, le=200_000)] = 1
    gpu: Name | None = None
    gpus: Annotated[Whole, Field(ge=0, le=1024)] = 0
    cpus: Annotated[Whole, Field(ge=1, le=4096)] = 32
    other: Watts
    tier: Literal["training", "inference", "development"] = "training"
    hosts: Annotated[
        tuple[NameOrRange, ...], BeforeValidator(_one_name_or_many), Field(max_length=10_000)
    ] = ()

    @model_validator(mode="after")
    def _gpus_of_a_kind(self) -> NodesDocument:
        if self.gpu is not None and self.gpus == 0 and "gpus" in self.model_fields_set:
            raise ValueError(f"gpus is 0 and gpu says {self.gpu}: say at least 1, or neither")
        if (self.gpu is None) != (self.gpus == 0):
            raise ValueError("nodes with GPUs say both gpu and gpus, such as gpu: A100, gpus: 4")
        named = sum(len(names_in(written)) for written in self.hosts)
        if self.hosts and named != self.count:
            raise ValueError(f"hosts names {named} machines and count says {self.count}; one name for each")
        return self


class RackDocument(Document):
    row: RowName = "1"
    cap: MoreWatts
    power: Annotated[tuple[Name, ...], Field(min_length=1, max_length=2)]
    redundant: Flag | None = None  # two supplies are A and B, unless said
    loop: Name
    switch: Name | None = None  # its own, unless said
    nodes: Annotated[tuple[NodesDocument, ...], BeforeValidator(_one_or_many), Field(min_length=1)]


class StorageDocument(Document):
    name: Name = "storage"
    throughput: Annotated[BytesPerSecond, Field(gt=0)]
    capacity: Annotated[Bytes, Field(gt=0)] | None = None
    price: Annotated[Usd, Field(ge=0)] | None = None


class SleepDocument(Document):
    """Where nodes can be sent to sleep and woken."""

    wake: SomeSeconds
    asleep: Annotated[Fraction, Field(ge=0, lt=1)]  # of its idle draw, what a sleeping node still takes


class SiteDocument(Document):
    region: Name
    tariff: Tariff
    carbon: Carbon
    weather: WeatherDocument | None = None
    outlook: OutlookDocument | None = None
    pue: Annotated[Number, Field(ge=1, le=5)] | None = None  # by cooling kind, unless said
    gpu_hour: dict[Name, NotNegativeUsd] = Field(default_factory=dict)  # what a GPU costs here, by model
    feeds: Annotated[dict[Name, FeedDocument], Field(min_length=1, max_length=1000)]
    pdus: Annotated[dict[Name, PduDocument], Field(max_length=10_000)] = Field(default_factory=dict)
    loops: Annotated[dict[Name, LoopDocument], Field(min_length=1, max_length=10_000)]
    racks: Annotated[dict[NameOrRange, RackDocument], Field(min_length=1, max_length=20_000)]
    storage: StorageDocument
    starts: StartsDocument = StartsDocument()
    telemetry: Annotated[
        tuple[Telemetry, ...], BeforeValidator(_one_or_many), Field(min_length=1, max_length=50)
    ] = (Telemetry(),)
    power_caps: PowerCapsDocument | None = None  # nobody is capped, unless said; emulated GPUs always can be
    engine: Literal["local", "slurm"] = "local"
    slurm: SlurmDocument = SlurmDocument()
    agent: Flag = False  # the control plane runs it itself, until an agent comes, unless said
    sleep: SleepDocument | None = None  # nodes stay awake, unless said

    @model_validator(mode="after")
    def _emulated_alone(self) -> SiteDocument:
        alone = [one.source for one in self.telemetry if one.source in ("emulated", "none")]
        if alone and len(self.telemetry) > 1:
            raise ValueError(f"telemetry that is {alone[0]} stands alone: a site is real, or it is not")
        if alone == ["emulated"] and self.power_caps is not None:
            raise ValueError("where telemetry is emulated, so are power caps: leave power_caps out")
        return self

    @property
    def is_emulated(self) -> bool:
        return self.telemetry[0].source == "emulated"


class LinkDocument(Document):
    name: Name
    between: tuple[Name, Name]
    bandwidth: Annotated[BitsPerSecond, Field(gt=0)]
    latency: Seconds
    # A class that is left out gets an equal part of what the others leave.
    shares: dict[TrafficClass, Annotated[Fraction, Field(gt=0)]] = Field(default_factory=dict)
    egress: NotNegativeUsd = 0.0  # per GB
