"""A job as it stands now: what it asked for, where it is, and how far down its ladder."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from wattline.enums import plain_members
from wattline.state.action import Action, Place
from wattline.state.ending import Ending, Usage
from wattline.state.request import JobRequest
from wattline.state.verdict import Verdict


@plain_members
class JobState(StrEnum):
    BLOCKED = "blocked"  # a phase before it has not succeeded yet
    WAITING = "waiting"
    STARTING = "starting"  # an action to begin it is in flight
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"


ENDED = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.REFUSED, JobState.CANCELLED})
HOLDING = frozenset({JobState.STARTING, JobState.RUNNING, JobState.PAUSING, JobState.STOPPING})
_IDLE = frozenset({JobState.BLOCKED, JobState.WAITING, JobState.PAUSED})
MIGRATE = "migrate"  # what a person may ask of a job that runs; "migrate to SITE" where they name one


class Saved(msgspec.Struct, frozen=True):
    """The newest checkpoint."""

    step: int
    at: float
    site: str
    digest: str = ""
    size_bytes: int = 0
    seconds: float = 0.0
    cadence: str = ""
    before: int = 0  # the step of the one before it


class Past(msgspec.Struct, frozen=True):
    """An attempt that is over."""

    attempt: int
    place: Place | None
    ending: Ending
    began_at: float | None  # None: it never started
    ended_at: float
    step: int
    say: str = ""
    kept_at: float | None = None  # when the newest checkpoint was saved, by it or by an earlier attempt


# A job may be lost and resumed without end; the journal has them all.
MOST_PAST = 50


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Immutable; folding an event replaces it."""

    request: JobRequest
    state: JobState
    submitted_at: float
    since: float  # in this state
    attempt: int = 0  # also the epoch: a later attempt fences the earlier ones
    place: Place | None = None
    started_at: float | None = None  # this attempt's
    first_started_at: float | None = None
    ended_at: float | None = None
    power_fraction: float = 1.0
    capped_at: float = 0.0  # when sharing power last moved its cap; a rung's is `rung_at`
    in_flight_fraction: float = 1.0
    # When its cap or its batch was last raised, and what both were before. Kept where a supply has a ramp.
    lifted_at: float | None = None
    lifted_from: tuple[float, float] = (1.0, 1.0)
    rung: int = -1  # the last rung of its ladder that was taken
    rung_at: float = 0.0  # when it last gave way; taking load back is no relief
    clear_since: float | None = None
    step: int = 0
    total: int | None = None
    loss: float | None = None
    saved: Saved | None = None
    restarts: int = 0  # of its own doing
    resumed_at: float = 0.0  # when a person last wanted it to go on
    mode: str = ""  # canonical or approximate, once that was chosen for it
    # Where it goes on once it has saved, narrower or wider than it was; None: it is not being resized.
    returns_to: Place | None = None
    yields: bool = False  # it is leaving to make way for another, and will wait in line again
    asked: str = ""  # pause | cancel | migrate | migrate to SITE: a person's word
    bursts: bool = False  # a person wants it to go to a cloud as soon as one takes it
    actions: int = 0  # how many it was given: makes each action's id its own
    usage: Usage = Usage()
    promise: Usage = Usage()  # what its project's account holds for it while it holds a claim
    ending: Ending | None = None
    say: str = ""
    outputs: str = ""
    copies: tuple[
        tuple[str, int], ...
    ] = ()  # other sites that hold a checkpoint, with the step of the newest
    unreached: tuple[
        tuple[str, float], ...
    ] = ()  # where its checkpoint could not be had, and when it was last tried
    past: tuple[Past, ...] = ()  # earlier attempts, the last MOST_PAST of them
    verdicts: tuple[Verdict, ...] = ()  # the last that changed

    @property
    def id(self) -> str:
        return self.request.job

    @property
    def remainder(self) -> JobRequest:
        """What it asks for from here on: the same, for as long as it may still run."""
        request = self.request
        if self.mode:
            request = msgspec.structs.replace(request, mode=self.mode)
        if not self.past and self.mode != "approximate":
            return request
        seconds = seconds_left(self)
        return request if seconds is None else msgspec.structs.replace(request, max_duration_seconds=seconds)

    def at_width(self, gpus: int) -> Job:
        """As it would be on so many GPUs."""
        return msgspec.structs.replace(self, request=self.request.at_width(gpus))

    @property
    def narrowest(self) -> Job:
        """As it would be on as few GPUs as it may run on."""
        elastic = self.request.elastic
        return self if elastic is None else self.at_width(elastic.least)

    @property
    def runs_as(self) -> str:
        """How it runs or ran: canonical, unless its owner or the policy said otherwise."""
        return self.mode or ("approximate" if self.request.mode == "approximate" else "canonical")

    @property
    def will_start(self) -> bool:
        """Whether it starts by itself once it may: it waits, and nobody asked it to stay where it is."""
        return self.state in _IDLE and not self.asked

    @property
    def order(self) -> tuple[float, float, str]:
        """Who goes first among equals; classes are weighed in the policy."""
        return (self.since, self.submitted_at, self.request.job)


# A ramp is what is added within a minute: raises that follow each other quicker count as one.
RAMP_SECONDS = 60.0


def lift(job: Job, power_fraction: float, in_flight_fraction: float, at: float) -> Job:
    """The same under another cap or with another batch, remembering from where it was raised."""
    before = (job.power_fraction, job.in_flight_fraction)
    after = msgspec.structs.replace(job, power_fraction=power_fraction, in_flight_fraction=in_flight_fraction)
    if power_fraction <= before[0] and in_flight_fraction <= before[1]:
        return after
    if job.lifted_at is not None and at - job.lifted_at < RAMP_SECONDS:
        before = (min(before[0], job.lifted_from[0]), min(before[1], job.lifted_from[1]))
    return msgspec.structs.replace(after, lifted_at=at, lifted_from=before)


def seconds_left(job: Job) -> float | None:
    """The longest it may still run: what earlier attempts used counts. None: it set no end."""
    most = job.request.max_duration_seconds
    if job.mode == "approximate":
        most = job.request.approximate_seconds or most
    if most is None:
        return None
    if job.request.elastic is None:
        used = sum(past.ended_at - past.began_at for past in job.past if past.began_at is not None)
    else:
        used = sum(_worked_seconds(job.request, past) for past in job.past)
    return max(1.0, most - used)


def _worked_seconds(request: JobRequest, past: Past) -> float:
    """How long it would have taken at the present width to do what an attempt had time for."""
    if past.began_at is None or past.place is None:
        return 0.0
    return (past.ended_at - past.began_at) * request.speed_at(past.place.gpus)


class Flight(msgspec.Struct, frozen=True):
    """An action that was issued and not yet answered."""

    action: Action
    issued_at: float
    tries: int = 1


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pipeline on its way."""

    run: str
    pipeline: str
    project: str
    actor: str
    submitted_at: float
    jobs: tuple[str, ...]
    documents: dict[str, str]
    process: str = ""  # who waits for it: the process that submitted it, or resumed it last
    gates: tuple[dict[str, object], ...] = ()
    gates_passed: bool | None = None
    judged: bool = False
    status: str = "running"
    manifest: str = ""
    say: str = ""
    ended_at: float | None = None
