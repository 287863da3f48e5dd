"""What exists: sites, feeds, loops, racks, nodes, links and storage, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from wattline.enums import plain_members
from wattline.facility.devices import Device
from wattline.facility.metering import Source


@plain_members
class CoolingKind(StrEnum):
    """How heat leaves a rack."""

    AIR = "air"
    REAR_DOOR = "rear-door"
    DIRECT_TO_CHIP = "direct-to-chip"
    IMMERSION = "immersion"


@plain_members
class TrafficClass(StrEnum):
    """Traffic is shaped apart, so that control is never starved by checkpoints."""

    CONTROL = "control"
    TRAINING = "training"
    CHECKPOINT = "checkpoint"
    ARTIFACT = "artifact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """A feed or a PDU: anything that carries power to racks and trips when it carries too much."""

    name: str
    rating_watts: float
    continuous_fraction: float = 0.8  # breakers carry 80 % of their rating for hours
    overload_factor: float = 1.2  # … and this much of it for `overload_seconds` before they trip
    overload_seconds: float = 60.0
    parent: str | None = None  # a PDU hangs on a feed
    ramp_watts_per_minute: float | None = None  # its load may not rise quicker; None: as it comes
    swing_watts: float | None = None  # the most that work in step may swing its load by; None: any
    swing_seconds: float = 0.1  # a swing with a shorter period does not reach it

    @property
    def usable_watts(self) -> float:
        return self.rating_watts * self.continuous_fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A cooling loop: what takes the heat of its racks away."""

    name: str
    kind: CoolingKind
    capacity_watts: float
    supply_celsius: float
    approach_kelvin: float  # coolant above its supply when it carries its whole capacity at full flow
    time_constant_seconds: float
    flow_litres_per_minute: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine that takes work."""

    name: str
    rack: str
    device: Device | None
    gpus: int
    cpus: int
    other_watts: float  # everything in the box but its GPUs, at work
    tier: str = "training"  # training | inference | development
    host: str = ""  # what its site's engine calls it; empty: the last part of its name

    @property
    def hostname(self) -> str:
        """What its site's engine calls it."""
        return self.host or self.name.rpartition("/")[2]

    @property
    def idle_watts(self) -> float:
        device_watts = self.device.idle_watts if self.device else 0.0
        return self.gpus * device_watts + self.other_watts

    @property
    def nameplate_watts(self) -> float:
        device_watts = self.device.limit_watts if self.device else 0.0
        return self.gpus * device_watts + self.other_watts


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack:
    """Nodes behind one cap, on one loop, under one switch."""

    name: str
    row: str
    cap_watts: float
    supplies: tuple[str, ...]  # feeds or PDUs; two mean A and B
    redundant: bool  # A/B: each of them must be able to carry all of it alone
    loop: str
    switch: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where checkpoints and data of a site live."""

    name: str
    throughput_bytes_per_second: float
    capacity_bytes: float | None = None
    usd_per_gigabyte_month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """What sleeping is for the nodes of a site, where they can be sent to sleep and woken."""

    wake_seconds: float  # from being asked to taking work; it idles meanwhile
    asleep: float  # of its idle draw, what a sleeping node still takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """How many jobs may start at once at one site; None and 0: as many as there are."""

    at_once: int | None = None  # that are starting, or began within the last `within_seconds`
    within_seconds: float = 60.0
    spacing_seconds: float = 0.0  # between one that began and the next
    loads_at_once: int | None = None  # of those, how many may be reading a checkpoint

    @property
    def is_on(self) -> bool:
        return self.at_once is not None or self.spacing_seconds > 0.0 or self.loads_at_once is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Machines of somebody else's, rented by the GPU-hour: nothing there is ours to measure or to cool."""

    max_gpus: int  # the most that is rented at once
    usd_per_gpu_hour: float  # power and cooling included; until its market says another price
    most_usd_per_gpu_hour: float | None = None  # what the same machines cost on demand
    usd_per_gigabyte_out: float = 0.0
    reclaims_per_gpu_hour: float = 0.0  # how often a machine is taken back, for each GPU of it
    notice_seconds: float = 0.0  # between the word that it is, and its end
    back_seconds: float = 3600.0  # in the twin: until it is given back, on average
    varies_fraction: float = 0.0  # in the twin: how far its price strays from hour to hour
    price_series: str = ""  # a file of hourly prices, relative to the facility's own


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCaps:
    """What sets the power limits of a site's nodes."""

    by: str  # helper | redfish
    command: tuple[str, ...] = ()  # that starts the helper of a node; {node} stands for its name
    targets: Mapping[str, str] = field(default_factory=dict)  # by node, the address of its controller
    secret_file: str = ""
    ca_file: str = ""
    timeout_seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slurmrestd:
    """Where a site's Slurm is asked instead of by its commands: a URL, or a socket of this machine."""

    url: str = ""
    socket: str = ""
    user: str = ""  # whose token it is; empty: the user of this process
    token_file: str = ""
    timeout_seconds: float = 15.0
    job: tuple[tuple[str, str | int | bool], ...] = ()  # more properties of every job


@dataclass(frozen=True, slots=True, kw_only=True)
class Slurm:
    """How a site's Slurm is to be asked; empty: as it comes."""

    partition: str = ""
    account: str = ""
    user: str = ""  # whom jobs run as; `submitter`: whoever submitted the run
    power_license: str = ""  # the license that stands for watts
    watts_per_license: float = 1000.0
    python: str = ""  # the interpreter as nodes know it
    sbatch: tuple[str, ...] = ()  # more options for it
    rest: Slurmrestd | None = None  # None: by its commands


@dataclass(frozen=True, slots=True, kw_only=True)
class Normals:
    """Outside as its year usually goes, where nobody has it hour by hour."""

    january_celsius: float  # the mean of the month, day and night
    july_celsius: float
    swing_kelvin: float  # from the coldest hour of a day to the warmest
    humidity: float  # relative, at the mean of the day
    warmest_hour: int  # of UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One hall, or a few that share a feed, a tariff and a grid; or a region of a cloud."""

    name: str
    region: str  # what residency rules speak of: eu, us, …
    supplies: tuple[Supply, ...]  # feeds first, then PDUs
    loops: tuple[Loop, ...]
    racks: tuple[Rack, ...]
    storage: Storage
    usd_per_kwh: float
    carbon_zone: str
    grams_co2_per_kwh: float
    pue: float
    telemetry: str  # emulated | none | the kind of its first source
    engine: str  # local | slurm
    thermal_time_scale: float = 1.0  # emulated only: heat moves this many times faster
    # Files of hourly values, relative to the facility's own; empty: the constants above, and the normals.
    price_series: str = ""
    carbon_series: str = ""
    weather_series: str = ""
    weather_normals: Normals | None = None  # None, and no series: nobody knows the weather
    sleep: Sleep | None = None  # None: nobody can send its nodes to sleep
    starts: Starts = Starts()
    cloud: Cloud | None = None  # then its feeds, loops and racks stand for what the provider takes care of
    # What is told of the hours ahead while it runs: a file or folder, absolute or in the state folder.
    outlook_file: str = ""
    slurm: Slurm = Slurm()  # where that is its engine
    agent: bool = False  # whether only an agent of its own ever runs it
    sources: tuple[Source, ...] = ()  # of readings, where they are not emulated
    power_caps: PowerCaps | None = None  # what sets power limits, where they are not emulated
    caps_power: bool = True  # whether jobs here can be capped at all

    @property
    def reads_gpus(self) -> bool:
        """Whether what GPUs draw is read here, or emulated."""
        return self.telemetry in ("emulated", "nvml") or any(source.reads_gpus for source in self.sources)

    def is_metered(self, name: str, quantity: str) -> bool:
        """Whether a rack, supply or loop has a meter; elsewhere only claims are known."""
        if self.telemetry in ("emulated", "none"):
            return self.telemetry == "emulated"
        return any(source.tells(name, quantity) for source in self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A connection between two sites, the same both ways."""

    name: str
    between: tuple[str, str]
    bits_per_second: float
    latency_seconds: float
    shares: Mapping[TrafficClass, float]  # of the bandwidth, each a guaranteed part
    usd_per_gigabyte: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facility:
    """All that Wattline may use."""

    name: str
    sites: tuple[Site, ...]
    links: tuple[Link, ...] = ()
    source: str = field(default="", compare=False)  # the file it came from

    @property
    def gpus(self) -> int:
        """Of our own: what may be rented is not among them."""
        halls = [site for site in self.sites if site.cloud is None]
        return sum(node.gpus for site in halls for rack in site.racks for node in rack.nodes)

    @property
    def emulated(self) -> bool:
        return any(site.telemetry == "emulated" for site in self.sites)
