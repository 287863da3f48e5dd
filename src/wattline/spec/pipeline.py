"""`wattline.yaml`: what a team asks for."""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import islice
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    field_validator,
    model_validator,
)

from wattline import units
from wattline.enums import plain_members
from wattline.spec.document import Document
from wattline.spec.elastic import ElasticDocument
from wattline.spec.flaws import MOST_FLAWS, Flaw, FlawedError
from wattline.spec.gates import check_gate
from wattline.spec.ladder import Ladder
from wattline.spec.modes import Change, Way
from wattline.spec.nearest import listed, nearest
from wattline.spec.preparation import Launch, Rehearsal, Runtime, Tokenizer, Variable
from wattline.spec.quantities import (
    BitsPerSecond,
    Bytes,
    Flag,
    Fraction,
    Name,
    Number,
    RelativePath,
    Seconds,
    Watts,
    Whole,
)


@plain_members
class Locality(StrEnum):
    """How far apart a job's GPUs may be, nearest first."""

    NVLINK = "nvlink"
    NODE = "node"
    SWITCH = "switch"
    RACK = "rack"
    ROW = "row"
    SITE = "site"
    ANY = "any"


@plain_members
class Thermal(StrEnum):
    """How hot and how long a job runs."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


@plain_members
class Priority(StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    URGENT = "urgent"


_DIGEST = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
_IMAGE = re.compile(r"[!-~]{1,400}@sha256:[0-9a-f]{64}")
# Those that a script can catch and that say nothing else about it.
_SIGNALS = ("SIGUSR1", "SIGUSR2", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGCONT")


def _check_digest(value: str) -> str:
    if _DIGEST.fullmatch(value) is None:
        raise ValueError("a sha256 is 64 digits of 0-9 and a-f; `wattline data pin` writes it")
    return value


def _check_image(value: str) -> str:
    if _IMAGE.fullmatch(value) is None:
        raise ValueError(
            "an image is named by its digest, such as registry/name@sha256:<64 digits>; a tag can be moved"
        )
    return value


def _check_signal(value: str) -> str:
    if value not in _SIGNALS:
        raise ValueError(f"a signal is one of {', '.join(_SIGNALS)}")
    return value


def _check_written_time(value: object) -> object:
    # Pydantic would take a number for seconds since 1970.
    if isinstance(value, int | float):
        raise ValueError("a time is written as 2026-12-01T08:00Z")  # noqa: TRY004 - pydantic reads ValueError
    return value


Digest = Annotated[str, AfterValidator(_check_digest)]
Image = Annotated[str, AfterValidator(_check_image)]
Signal = Annotated[str, AfterValidator(_check_signal)]
Gate = Annotated[str, AfterValidator(check_gate)]
Time = Annotated[AwareDatetime, BeforeValidator(_check_written_time)]
Count = Annotated[Whole, Field(ge=0, le=1_000_000)]


class Data(Document):
    name: Name
    path: RelativePath
    sha256: Digest | None = None
    schema_: RelativePath | None = Field(default=None, alias="schema")

    @field_validator("path")
    @classmethod
    def _beside_the_results(cls, path: str) -> str:
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "out":
            raise ValueError("data lies in a file or folder of its own, not in out/, which is for results")
        return path


class Profile(Document):
    """What a phase uses besides GPUs."""

    network: Literal["light", "normal", "heavy"] = "normal"
    cpus: Annotated[Number, Field(gt=0, le=4096)] = 1.0


def _one_or_many(value: object) -> object:
    return [value] if isinstance(value, str) else value


class Resources(Document):
    gpus: Count = 0
    gpu: Annotated[tuple[str, ...], BeforeValidator(_one_or_many)] = ()  # any of these; empty: any
    elastic: ElasticDocument | None = None  # it may run on fewer or more

    @model_validator(mode="after")
    def _widths_meet(self) -> Resources:
        elastic = self.elastic
        if elastic is None:
            return self
        if not elastic.min <= self.gpus <= elastic.max:
            raise ValueError(
                f"gpus ({self.gpus}) is from elastic.min ({elastic.min}) to elastic.max ({elastic.max})"
            )
        if (self.gpus - elastic.min) % elastic.step or (elastic.max - elastic.min) % elastic.step:
            raise ValueError(
                f"gpus ({self.gpus}) and elastic.max ({elastic.max}) are elastic.min ({elastic.min}) and "
                f"so many times elastic.step ({elastic.step}) more"
            )
        return self


class Bandwidth(Document):
    sync: BitsPerSecond = 0.0
    ingest: BitsPerSecond = 0.0
    checkpoint: BitsPerSecond = 0.0


class Constraints(Document):
    peak_power: Watts | None = None
    thermal: Thermal = Thermal.NORMAL
    locality: Locality = Locality.ANY
    bandwidth: Bandwidth = Bandwidth()
    residency: tuple[str, ...] = ()
    max_duration: Seconds | None = None
    burst: Flag = False  # it may go to a cloud region
    brings_back: Bytes = 0.0  # from there, when it has ended
    on_isolation: Literal["continue", "stop"] = "stop"


class Every(Document):
    seconds: Seconds


def _read_every(value: object) -> object:
    if value == "auto" or isinstance(value, Every):
        return value
    try:
        seconds = units.DURATION.parse(value)
    except units.QuantityError as error:
        raise ValueError(f"{error}, or auto") from error
    if seconds < 1:
        raise ValueError("checkpoints are at least 1 s apart, such as 30min, or auto")
    return Every.model_construct(seconds=seconds)


class Checkpoint(Document):
    every: Annotated[Literal["auto"] | Every, BeforeValidator(_read_every)] = "auto"
    replicate_to: tuple[Name, ...] = ()
    keep: Annotated[Whole, Field(ge=1, le=1000)] = 3


class Signals(Document):
    """For a script that may not be changed."""

    checkpoint: Signal | None = None
    finish: Signal = "SIGTERM"
    saved_to: RelativePath | None = None


class Restart(Document):
    max: Annotated[Whole, Field(ge=0, le=1000)] = 2


class Swing(Document):
    """How the draw of a job whose GPUs work in step goes up and down."""

    communicating: Watts  # what each GPU draws while it waits for the others
    step: Annotated[Seconds, Field(gt=0)]
    floor: Watts = 0.0  # what it is kept at by idle work: smooths the swing, and costs these watts

    @property
    def watts(self) -> float:
        return max(self.communicating, self.floor)


class Phase(Document):
    run: Annotated[str, Field(min_length=1, max_length=10_000)]
    after: Annotated[tuple[Name, ...], Field(max_length=200)] = ()
    class_: Name = Field(default="low-power-experiment", alias="class")
    profile: Profile = Profile()
    priority: Priority = Priority.NORMAL
    deadline: Time | None = None
    mode: Literal["canonical", "approximate", "auto"] = "canonical"
    modes: dict[Literal["canonical", "approximate"], Way] = Field(default_factory=dict)
    confidence: Fraction | None = None  # how likely it is to be worth its cost, as its owner sees it
    resources: Resources = Resources()
    constraints: Constraints = Constraints()
    swing: Swing | None = None
    checkpoint: Checkpoint | None = None
    under_pressure: Ladder | None = None
    signals: Signals | None = None
    restart: Restart = Restart()
    launch: Launch | None = None
    rehearse: Rehearsal | Literal["skip"] = Rehearsal()

    @model_validator(mode="after")
    def _two_ways_to_choose_from(self) -> Phase:
        if self.mode == "auto" and "approximate" not in self.modes:
            raise ValueError(
                "mode: auto chooses between two ways: say what is approximate, such as "
                "modes: {approximate: {run: python train.py --steps 100, max_duration: 10min}}"
            )
        return self


class Release(Document):
    name: Name
    to: Name = "staging"
    approval: Literal["required", "none"] = "none"
    change: Change = "normal"  # how much of what is released this run changes, as its owner sees it


def _check_data(data: tuple[Data, ...]) -> tuple[Data, ...]:
    names = [entry.name for entry in data]
    flaws = [
        Flaw(at=(position, "name"), message="two data entries have this name", value=repr(name))
        for position, name in enumerate(names)
        if name in names[:position]
    ]
    if flaws:
        raise FlawedError(flaws)
    return data


def _check_phases(phases: dict[str, Phase]) -> dict[str, Phase]:
    dangling = (
        Flaw(
            at=(name, "after", position),
            message="there is no phase of this name",
            value=repr(earlier),
            allowed=listed(phases),
            nearest=nearest(earlier, phases),
        )
        for name, phase in phases.items()
        for position, earlier in enumerate(phase.after)
        if earlier not in phases
    )
    if flaws := list(islice(dangling, MOST_FLAWS)):
        raise FlawedError(flaws)
    _order(phases)
    return phases


def _order(phases: dict[str, Phase]) -> tuple[str, ...]:
    done: list[str] = []
    left = dict(phases)
    while left:
        ready = [name for name, phase in left.items() if not any(earlier in left for earlier in phase.after)]
        if not ready:
            circle = _circle(left)
            message = f"phases wait for each other: {' → '.join(circle)}"
            raise FlawedError([Flaw(at=(circle[0], "after"), message=message)])
        done += ready
        for name in ready:
            del left[name]
    return tuple(done)


def _circle(left: dict[str, Phase]) -> tuple[str, ...]:
    """One circle among phases that each wait for another of them: follow the first until it returns."""
    walk = [next(iter(left))]
    while walk[-1] not in walk[:-1]:
        walk.append(next(earlier for earlier in left[walk[-1]].after if earlier in left))
    return tuple(walk[walk.index(walk[-1]) :])


class Pipeline(Document):
    pipeline: Name
    model: Name
    owner: Name
    project: Name
    intended_use: Annotated[str, Field(max_length=2000)] = ""
    image: Image | None = None
    runtime: Runtime | None = None
    secrets: Annotated[tuple[Variable, ...], Field(max_length=100)] = ()  # environment variables it needs
    tokenizer: Tokenizer | None = None
    data: Annotated[tuple[Data, ...], Field(max_length=1000), AfterValidator(_check_data)] = ()
    params: RelativePath | None = None
    phases: Annotated[dict[Name, Phase], Field(min_length=1, max_length=200), AfterValidator(_check_phases)]
    gates: Annotated[tuple[Gate, ...], Field(max_length=200)] = ()
    release: Release | None = None

    def order(self) -> tuple[str, ...]:
        """Phase names so that each stands after those it waits for."""
        return _order(self.phases)

    def rests_on(self) -> frozenset[str]:
        """Phases that what is released rests on: the last one holds the results, and those before it that
        led to them."""
        found: set[str] = set()
        next_ones = [self.order()[-1]]
        while next_ones:
            name = next_ones.pop()
            if name not in found:
                found.add(name)
                next_ones += self.phases[name].after
        return frozenset(found)
