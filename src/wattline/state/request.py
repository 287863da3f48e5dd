"""What one job asks for: a phase of a pipeline, or a line of a trace, in the words judges use."""

from __future__ import annotations

import math

import msgspec

from wattline.spec.ladder import Rung
from wattline.spec.pipeline import Locality, Phase, Pipeline, Priority, Thermal
from wattline.units import SECONDS_PER_HOUR

# Where a job set no end, places are compared over this long.
_COMPARED_SECONDS = SECONDS_PER_HOUR
ONE_NODE = frozenset({Locality.NVLINK, Locality.NODE})

Kind = tuple[int, tuple[str, ...], bool]

PRIORITY_RANK = {Priority.LOW: -10.0, Priority.NORMAL: 0.0, Priority.HIGH: 10.0, Priority.URGENT: 100.0}


class Elastic(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """On how many GPUs a job may run, and what it asked for: figures at other widths follow from these."""

    gpus: int  # as asked
    least: int
    most: int
    step: int = 1
    alpha: float = 0.9
    peak_watts: float | None = None
    max_duration_seconds: float | None = None
    approximate_seconds: float | None = None


class JobRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Immutable: a job that wants something else is another job."""

    job: str  # "run/phase"
    run: str
    phase: str = "train"
    project: str = "default"
    owner: str = ""
    model: str = ""
    intended_use: str = ""
    scheduling_class: str = "low-power-experiment"
    priority: Priority = Priority.NORMAL
    after: tuple[str, ...] = ()  # jobs that must have succeeded before
    gpus: int = 0
    gpu_models: tuple[str, ...] = ()  # any of these; empty: any
    cpus: float = 1.0
    peak_watts: float | None = None  # of the whole job; None: what its GPUs may draw
    thermal: Thermal = Thermal.NORMAL
    locality: Locality = Locality.ANY
    residency: tuple[str, ...] = ()
    checkpoint_bits_per_second: float = 0.0
    max_duration_seconds: float | None = None
    deadline_at: float | None = None
    mode: str = "canonical"  # canonical | approximate | auto: the policy chooses when it starts
    approximate_seconds: float | None = None  # the longest it may run approximately; None: as it does else
    confidence: float | None = None  # its owner's word on how likely it is to be worth its cost
    channel: str = ""  # what is released there rests on it; "": nothing that is released does
    change: str = "normal"  # how large a change that release is said to be
    ladder: tuple[Rung, ...] | None = None  # None: the class's, then the policy's
    checkpoints: bool = False
    replicate_to: tuple[str, ...] = ()
    restart_max: int = 2
    approved: bool = False
    # Of each GPU while the others are waited for; None: it does not swing, or nobody said so.
    communicating_watts: float | None = None
    step_seconds: float = 1.0  # how often
    burst: bool = False  # it may go to a cloud
    brings_back_bytes: float = 0.0  # what must come back from one when it has ended; 0: not told
    saves_every_seconds: float = 0.0  # 0: not told
    on_isolation: str = "stop"  # or continue: when its site is cut off
    # It may run on fewer or more GPUs; `gpus` and what follows from it are then of its present width.
    elastic: Elastic | None = None

    @property
    def shape(self) -> tuple[object, ...]:
        """What decides where it fits: two jobs of one shape fit or fail together, but for what is left of
        their teams' quotas."""
        shape: tuple[object, ...] = (
            self.scheduling_class,
            self.gpus,
            self.gpu_models,
            self.cpus,
            self.peak_watts,
            self.thermal,
            self.locality,
            self.residency,
            self.checkpoint_bits_per_second,
            self.replicate_to,
            # Heat that takes longer than a cool job lasts does not matter to it.
            self.max_duration_seconds if self.thermal is Thermal.LOW else None,
            None if self.communicating_watts is None else (self.communicating_watts, self.step_seconds),
        )
        if self.elastic is not None:
            shape = (*shape, "elastic", self.elastic.least, self.elastic.step)
        return (*shape, "burst") if self.burst else shape

    @property
    def may_spread(self) -> bool:
        """Whether it may take GPUs of several nodes."""
        return self.gpus > 1 and self.locality not in ONE_NODE

    @property
    def kind(self) -> Kind:
        """GPUs, their models, whether they may be spread: of one kind, what fits for more watts of each GPU
        fits for fewer. Of an elastic job, as many GPUs as it needs at least."""
        if self.elastic is not None:
            least = self.elastic.least
            return (least, self.gpu_models, least > 1 and self.locality not in ONE_NODE)
        return (self.gpus, self.gpu_models, self.may_spread)

    @property
    def each_watts(self) -> float:
        """The most that each of its GPUs may draw; without bound where that is all it can."""
        if not self.gpus:
            return 0.0
        return math.inf if self.peak_watts is None else self.peak_watts / self.gpus

    def speed_at(self, gpus: int) -> float:
        """How fast it is on so many GPUs, where it is 1 on those it has."""
        alpha = 1.0 if self.elastic is None else self.elastic.alpha
        return 1.0 if gpus == self.gpus else float((gpus / self.gpus) ** alpha)

    def at_width(self, gpus: int) -> JobRequest:
        """The same on so many GPUs: as many watts of each, and as long as the same work takes there."""
        elastic = self.elastic
        if elastic is None or gpus == self.gpus:
            return self
        slower = (elastic.gpus / gpus) ** elastic.alpha
        return msgspec.structs.replace(
            self,
            gpus=gpus,
            peak_watts=_times(elastic.peak_watts, gpus / elastic.gpus),
            max_duration_seconds=_times(elastic.max_duration_seconds, slower),
            approximate_seconds=_times(elastic.approximate_seconds, slower),
        )

    @property
    def as_asked(self) -> JobRequest:
        """At the width that its owner asked for."""
        return self if self.elastic is None else self.at_width(self.elastic.gpus)


def _times(value: float | None, factor: float) -> float | None:
    return value if value is None or factor == 1.0 else value * factor


def elastic_request(
    request: JobRequest, least: int, most: int, step: int = 1, alpha: float = 0.9
) -> JobRequest:
    """The same job, which may also run on fewer or more GPUs."""
    elastic = Elastic(
        gpus=request.gpus,
        least=least,
        most=most,
        step=step,
        alpha=alpha,
        peak_watts=request.peak_watts,
        max_duration_seconds=request.max_duration_seconds,
        approximate_seconds=request.approximate_seconds,
    )
    return msgspec.structs.replace(request, elastic=elastic)


def compared_hours(request: JobRequest) -> float:
    """Over how long places are compared: as long as a job may run."""
    return (request.max_duration_seconds or _COMPARED_SECONDS) / SECONDS_PER_HOUR


def job_id(run: str, phase: str) -> str:
    return f"{run}/{phase}"


def requests_of(pipeline: Pipeline, run: str, *, approved: bool = False) -> tuple[JobRequest, ...]:
    """One request for each phase, in an order in which they could run."""
    return tuple(_request(pipeline, run, name, approved=approved) for name in pipeline.order())


def _longest(phase: Phase) -> float | None:
    """As its mode says, where it is certain; while that is not chosen yet, as the canonical one."""
    way = phase.modes.get("canonical" if phase.mode == "auto" else phase.mode)
    return way.max_duration if way is not None and way.max_duration else phase.constraints.max_duration


def _request(pipeline: Pipeline, run: str, name: str, *, approved: bool) -> JobRequest:
    request, elastic = _asked(pipeline, run, name, approved=approved), pipeline.phases[name].resources.elastic
    if elastic is None:
        return request
    return elastic_request(request, elastic.min, elastic.max, elastic.step, elastic.alpha)


def _asked(pipeline: Pipeline, run: str, name: str, *, approved: bool) -> JobRequest:
    phase = pipeline.phases[name]
    limits = phase.constraints
    ladder, release = phase.under_pressure, pipeline.release
    return JobRequest(
        job=job_id(run, name),
        run=run,
        phase=name,
        project=pipeline.project,
        owner=pipeline.owner,
        model=pipeline.model,
        intended_use=pipeline.intended_use,
        scheduling_class=phase.class_,
        priority=phase.priority,
        after=tuple(job_id(run, earlier) for earlier in phase.after),
        gpus=phase.resources.gpus,
        gpu_models=phase.resources.gpu,
        cpus=phase.profile.cpus,
        peak_watts=limits.peak_power,
        thermal=limits.thermal,
        locality=limits.locality,
        residency=limits.residency,
        checkpoint_bits_per_second=limits.bandwidth.checkpoint,
        max_duration_seconds=_longest(phase),
        deadline_at=phase.deadline.timestamp() if phase.deadline else None,
        mode=phase.mode,
        approximate_seconds=phase.modes["approximate"].max_duration if "approximate" in phase.modes else None,
        confidence=phase.confidence,
        channel=release.to if release is not None and name in pipeline.rests_on() else "",
        change=release.change if release is not None else "normal",
        ladder=None if ladder is None else tuple(rung.rung() for rung in ladder),
        checkpoints=phase.checkpoint is not None
        or (phase.signals is not None and bool(phase.signals.saved_to)),
        replicate_to=phase.checkpoint.replicate_to if phase.checkpoint else (),
        restart_max=phase.restart.max,
        approved=approved,
        communicating_watts=phase.swing.watts if phase.swing is not None else None,
        step_seconds=phase.swing.step if phase.swing is not None else 1.0,
        burst=limits.burst,
        brings_back_bytes=limits.brings_back,
        saves_every_seconds=_saves_every_seconds(phase),
        on_isolation=limits.on_isolation,
    )


def _saves_every_seconds(phase: Phase) -> float:
    every = phase.checkpoint.every if phase.checkpoint is not None else "auto"
    return 0.0 if every == "auto" else every.seconds
