"""The only thing a world gives: what happened, when, by whom, for which project.

Readers of old journals rely on these shapes: fields are added with defaults, never renamed;
a change that breaks this raises SCHEMA_VERSION and comes with an upgrade.
"""

from __future__ import annotations

import msgspec

from wattline.state.action import Action
from wattline.state.ending import Ending, Usage
from wattline.state.job import Job, Run
from wattline.state.request import JobRequest
from wattline.state.standing import Standing

SCHEMA_VERSION = 2


class Happening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True, tag_field="event"):
    """What every event carries."""

    at: float
    actor: str = "wattline"
    project: str = ""
    source: str = ""


class Adopted(Happening, frozen=True, kw_only=True):
    """From here on these documents are in force."""

    facility: str
    facility_sha256: str
    policy: str
    policy_sha256: str
    code: str  # the version that decides
    # A candidate that decides for some of the nodes: sites, racks or nodes by name; empty: there is none.
    canary: str = ""
    canary_sha256: str = ""
    canary_on: tuple[str, ...] = ()
    canary_share: float = 0.0  # of the runs


class RunSubmitted(Happening, frozen=True, kw_only=True):
    """All jobs of a run at once, with what they run on."""

    run: str
    pipeline: str
    jobs: tuple[JobRequest, ...]
    documents: dict[str, str] = {}  # digests: pipeline, bundle, …


class Measured(Happening, frozen=True, kw_only=True):
    """Readings of one moment: subject, quantity (its unit last), value.

    JSON has no NaN: what a broken meter says is written as null, and counts as nothing said. Where meters
    tell only what changed, their site vouches for the rest.
    """

    readings: tuple[tuple[str, str, float | None], ...]
    unchanged: tuple[str, ...] = ()  # sites whose other meters all stand at what they said last


class Noticed(Happening, frozen=True, kw_only=True):
    """Something worth telling that changes no number: a fault that began, a device that throttles."""

    subject: str
    say: str
    job: str = ""


class AttemptStarted(Happening, frozen=True, kw_only=True):
    job: str
    attempt: int
    action: str = ""


class Progressed(Happening, frozen=True, kw_only=True):
    """How far an attempt has come; the world reports it about once a second, not at each step."""

    job: str
    attempt: int
    step: int
    total: int | None = None
    loss: float | None = None


class CheckpointSaved(Happening, frozen=True, kw_only=True):
    job: str
    attempt: int
    step: int
    site: str
    digest: str = ""
    size_bytes: int = 0  # of all that a copy elsewhere needs
    added_bytes: int = 0  # to what its site holds
    seconds: float = 0.0
    cadence: str = ""  # how often it is saved and why, where nobody said


class AttemptEnded(Happening, frozen=True, kw_only=True):
    """An attempt is over, whatever the reason: its claim is free again."""

    job: str
    attempt: int
    ending: Ending
    code: int | None = None
    signal: int | None = None
    say: str = ""
    usage: Usage = Usage()
    outputs: str = ""  # digest of what it left in its results folder


class Acknowledged(Happening, frozen=True, kw_only=True):
    """A cap or a batch is as asked; a beginning or a pause is still being worked on.

    Those are answered by the attempt itself, when it has started or ended: until then this says that somebody
    is at it, and the time to answer starts anew. A stop is answered by the attempt's end and by nothing else.
    """

    action: str


class ActionFailed(Happening, frozen=True, kw_only=True):
    action: str
    say: str
    unreached: bool = False  # what the job would go on from could not be had there


class Asked(Happening, frozen=True, kw_only=True):
    """A person's word about a job; it wins over the policy."""

    job: str
    want: str  # pause | resume | cancel | burst | migrate
    to: str = ""  # a site, for migrate; empty: any other


class GatesJudged(Happening, frozen=True, kw_only=True):
    run: str
    passed: bool | None  # None: could not be evaluated
    results: tuple[dict[str, object], ...] = ()
    manifest: str = ""  # digest: from here on the run's manifest is settled


class RunConcluded(Happening, frozen=True, kw_only=True):
    """The last word on a run: nothing about it changes after this but its releases."""

    run: str
    status: str
    say: str = ""


class Forgotten(Happening, frozen=True, kw_only=True):
    """Nobody asks about these runs any more; the journal still has them."""

    runs: tuple[str, ...]


class Released(Happening, frozen=True, kw_only=True):
    name: str
    channel: str
    run: str
    manifest: str
    number: int
    rolled_back: bool = False
    note: str = ""


class ExceptionAsked(Happening, frozen=True, kw_only=True):
    """Somebody wants more than a quota, or a rule not to hold for a project for a while."""

    key: str  # of this request alone: heard twice, it counts once
    rule: str
    until: float
    because: str
    amount: float = 0.0  # for quotas: on top of every week's, in its unit


class ExceptionAnswered(Happening, frozen=True, kw_only=True):
    """The actor's answer, in the role that the policy gave them then."""

    exception: str
    approved: bool
    role: str = ""
    note: str = ""


class Expected(msgspec.Struct, frozen=True, array_like=True):
    """When a job is expected to start: as likely before as after, and nine times in ten before.

    None: not within what was looked at, or too little was looked at to tell.
    """

    job: str
    p50_at: float | None
    p90_at: float | None
    # Before they were corrected by how wrong such forecasts were: what the next correction is learnt from.
    raw_p50_at: float | None = None
    raw_p90_at: float | None = None
    # A pledge, where all who run and wait say how long they take: nineteen in twenty start by then.
    by_at: float | None = None


class Forecasted(Happening, frozen=True, kw_only=True):
    """What is expected of all that waited at this time: by runs of the twin, or by how fast lines move."""

    starts: tuple[Expected, ...]
    samples: int  # how often the future was played through; 0: by the lines alone
    horizon_seconds: float  # … and how far


class OutlookHour(msgspec.Struct, frozen=True, array_like=True):
    """What a kWh is expected to emit and to cost in an hour; None: nobody knows."""

    grams_co2_per_kwh: float | None = None
    usd_per_kwh: float | None = None
    crowding: float = 0.0  # what others would give for its capacity, in what the policy counts hours by


class Outlooked(Happening, frozen=True, kw_only=True):
    """What is expected of a site's grid, hour by hour, as far as it was known at this time."""

    site: str
    begins_at: float  # the first hour
    hours: tuple[OutlookHour, ...] = ()


class NodeSlept(Happening, frozen=True, kw_only=True):
    """A node that was asked to sleep does; the answer to that action."""

    node: str
    action: str


class NodeWoke(Happening, frozen=True, kw_only=True):
    """A node that was asked to wake takes work again."""

    node: str
    action: str


class NodeReclaimed(Happening, frozen=True, kw_only=True):
    """A machine of a cloud is taken back: whoever is on it has so long to save and leave."""

    node: str
    notice_seconds: float = 0.0


class NodeGivenBack(Happening, frozen=True, kw_only=True):
    """A machine that was taken back may be rented again."""

    node: str


class CheckpointCopied(Happening, frozen=True, kw_only=True):
    """A checkpoint is complete at a second site too: from there the job could go on."""

    job: str
    attempt: int
    step: int
    site: str


class CheckpointLost(Happening, frozen=True, kw_only=True):
    """What a job saved at a site cannot be had any more: it goes on from a copy, or from the start."""

    job: str
    site: str


class SiteStood(Happening, frozen=True, kw_only=True):
    """How the control plane and a site's agent stand to each other from here on, and why."""

    site: str
    standing: Standing
    epoch: int  # of the site's lease
    agent: str = ""  # who holds it; nobody where it was given up
    say: str = ""


class SiteAsked(Happening, frozen=True, kw_only=True):
    """A person's word about a site that has an agent."""

    site: str
    want: str  # give_up | reviewed


class SiteHeard(Happening, frozen=True, kw_only=True):
    """All that a site's agent wrote down up to this number is in the journal: this record has the last."""

    site: str
    through: int


class Acted(Happening, frozen=True, kw_only=True):
    """What a site's agent decided by itself: its own rungs, and what a cut asked for."""

    action: Action


class Handed(Happening, frozen=True, kw_only=True):
    """To an agent: a job that its site holds from now on, with its run and with what came before it."""

    action: Action
    jobs: tuple[Job, ...]  # the last is the one to begin
    run: Run


class Ticked(Happening, frozen=True, kw_only=True):
    """Time passed, and nothing else."""


Event = (
    Adopted
    | RunSubmitted
    | Measured
    | Noticed
    | AttemptStarted
    | Progressed
    | CheckpointSaved
    | AttemptEnded
    | Acknowledged
    | ActionFailed
    | Asked
    | GatesJudged
    | RunConcluded
    | Forgotten
    | Released
    | ExceptionAsked
    | ExceptionAnswered
    | Forecasted
    | Outlooked
    | NodeSlept
    | NodeWoke
    | NodeReclaimed
    | NodeGivenBack
    | CheckpointCopied
    | CheckpointLost
    | SiteStood
    | SiteAsked
    | SiteHeard
    | Acted
    | Handed
    | Ticked
)
