"""What exactly is told of runs, jobs, logs and weeks?

`--output json` prints these objects and the API answers with them: one set of types, from which the API's
documentation is made as well. Keys are added freely; one that is there keeps its name and its meaning.
"""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from wattline.control import Standing
from wattline.policy import BlockedBy, Room
from wattline.policy.explaining.week import RunTake
from wattline.state import ActionKind, Ending, JobState, Verdict
from wattline.state import Standing as SiteStanding

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class Writer(TypedDict):
    """Who conducts."""

    holder: str
    hostname: str
    pid: int
    epoch: int
    expires_at: Moment | None


class RunStanding(TypedDict):
    """A run in a list of runs."""

    run_id: str
    pipeline: str
    project: str
    submitted_by: str
    submitted_at: Moment | None
    ended_at: Moment | None
    state: str
    status: str
    say: str
    phase: str
    site: str | None
    nodes: list[str]
    step: int
    total: int | None
    waiting_for: str | None


class AttemptStanding(TypedDict):
    attempt: int
    site: str | None
    nodes: list[str]
    ending: Ending
    say: str
    step: int
    began_at: Moment | None
    ended_at: Moment | None


class PhaseStanding(TypedDict):
    """A job of a run, with the attempts that are over."""

    phase: str
    state: JobState
    say: str
    since: Moment | None
    step: int
    total: int | None
    loss: float | None
    power_fraction: float
    in_flight_fraction: float
    attempt: int
    waiting_for: str | None
    attempts: list[AttemptStanding]


class ReleaseStanding(TypedDict):
    """What a channel holds now."""

    name: str
    channel: str
    number: int
    run_id: str
    by: str
    since: Moment | None
    path: str | None


class AgentStanding(TypedDict):
    """A site that has an agent, and how it stands to the control plane."""

    site: str
    standing: SiteStanding
    since: Moment | None
    epoch: int
    agent: str
    say: str


class Status(TypedDict):
    home: str
    writer: Writer | None
    runs: list[RunStanding]
    releases: list[ReleaseStanding]
    nodes: NotRequired[dict[str, int]]
    sites: NotRequired[list[AgentStanding]]


class RunStatus(RunStanding):
    home: str
    writer: Writer | None
    phases: list[PhaseStanding]


class HistoryEntry(TypedDict):
    at: Moment | None
    what: str
    say: str
    job: str | None
    attempt: int | None
    action: ActionKind | None
    because: str | None
    lost_gpu_seconds: float | None
    verdicts: tuple[Verdict, ...]


class EtaTold(TypedDict):
    p50: Moment | None
    p90: Moment | None
    by: Moment | None
    age_seconds: float
    samples: int
    horizon_seconds: float


class ReservationTold(TypedDict):
    holder: str
    project: str
    is_own: bool
    made_at: Moment | None
    starts_at: Moment | None
    place: str
    gpus: int
    free_gpus: int
    leavers: tuple[str, ...]
    because: str


class OptionTold(TypedDict):
    change: str
    starts_at: Moment | None
    cost_delta_usd: float | None
    fields: dict[str, str | tuple[str, ...]]


MoveTold = TypedDict("MoveTold", {"at": Moment | None, "from": str, "to": str, "why": str})


class Explained(TypedDict):
    """Why a job stands as it does, and what would change that."""

    job: str
    state: JobState
    say: str
    blocked_by: BlockedBy | None
    eta: EtaTold | None
    reservation: ReservationTold | None
    options: list[OptionTold]
    verdicts: tuple[Verdict, ...]
    moves: list[MoveTold]
    not_estimated: tuple[str, ...]
    history: list[HistoryEntry]


class ExplainedJob(Explained):
    as_of: Moment | None


class ExplainedRun(TypedDict):
    run_id: str
    state: str
    as_of: Moment | None
    jobs: list[Explained]
    history: list[HistoryEntry]


class LogTold(TypedDict):
    job: str
    attempt: int
    path: str
    text: str


class Logs(TypedDict):
    logs: list[LogTold]


class Steered(TypedDict):
    """What was asked of which jobs; whoever conducts does it."""

    run_id: str
    want: str
    jobs: list[str]
    to: NotRequired[str]


class QuotaTold(TypedDict):
    limit: float | None
    granted: float
    used: float
    promised: float
    left: float | None
    rate_per_hour: float
    reaches_at: Moment | None


class RunningTold(TypedDict):
    jobs: tuple[str, ...]
    gpus: int


class WaitingJobTold(TypedDict):
    job: str
    waiting_for: str | None


class WaitingTold(TypedDict):
    jobs: list[WaitingJobTold]
    gpus: int


class ExceptionTold(TypedDict):
    id: str
    project: str
    rule: str
    amount: float | None
    quantity: str | None
    until: Moment | None
    because: str
    state: str
    asked_by: str
    asked_at: Moment | None
    answered_by: str | None
    answered_at: Moment | None
    role: str | None
    note: str


class ExceptionHanded(TypedDict):
    """A request or an answer that was handed over; a request has no id before whoever conducts took it in."""

    id: str | None
    journaled: bool
    project: NotRequired[str]
    rule: NotRequired[str]
    amount: NotRequired[float | None]
    quantity: NotRequired[str | None]
    until: NotRequired[Moment | None]
    because: NotRequired[str]
    state: NotRequired[str]
    asked_by: NotRequired[str]
    asked_at: NotRequired[Moment | None]
    answered_by: NotRequired[str | None]
    answered_at: NotRequired[Moment | None]
    role: NotRequired[str | None]
    note: NotRequired[str]


class TeamTold(TypedDict):
    team: str
    limit: str
    quotas: dict[str, QuotaTold]
    running: RunningTold
    waiting: WaitingTold
    exceptions: list[ExceptionTold]


class WeekTold(TypedDict):
    begins_at: Moment | None
    ends_at: Moment | None
    is_over: bool


class ScalingTold(TypedDict):
    starts: int
    cold_starts: int
    hit_rate: float | None
    cold_start_seconds: float | None
    longest_cold_start_seconds: float


class ReportTold(TypedDict):
    policy: str
    at: Moment | None
    week: WeekTold
    teams: list[TeamTold]
    run: RunTake | None
    warnings: tuple[str, ...]
    slos: tuple[Standing, ...]
    scaling: NotRequired[ScalingTold]
    not_estimated: list[str]


class SiteWord(TypedDict):
    """A person's word about a site, handed to whoever conducts."""

    site: str
    want: str
    stood: str


class SiteTold(TypedDict):
    """How a site stands: headroom of each feed, loop, rack and link, and what follows from it."""

    site: str
    at: Moment | None
    emulated: bool
    caps_power: bool
    gpus: int
    gpus_free: int
    others_gpus: int  # of these none is free: held by what was not started through Wattline
    nodes_off: int
    rooms: tuple[Room, ...]
    say: tuple[str, ...]
    agent: AgentStanding | None  # None: it has none
