"""`policy.yaml`: what may run, where, when and how hard."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from wattline.spec.bursting import Bursting
from wattline.spec.document import Document
from wattline.spec.elastic import Resizing
from wattline.spec.expression import LONGEST_EXPRESSION, compile_expression
from wattline.spec.flaws import Flaw, FlawedError
from wattline.spec.ladder import Ladder, Rung
from wattline.spec.modes import Modes, Throttling
from wattline.spec.pipeline import Time
from wattline.spec.power_sharing import PowerSharing
from wattline.spec.quantities import Flag, Fraction, Kilograms, Kwh, Name, Number, Seconds, Usd, Whole
from wattline.spec.queueing import QueueBound
from wattline.spec.roles import CAPACITY_APPROVER, Roles, check_approvers
from wattline.spec.scaling import Scaling
from wattline.spec.sharing import Sharing
from wattline.spec.shifting import Shifting
from wattline.spec.slo import Slos
from wattline.spec.starts import StartsDocument

# What a rule's `when` may speak of.
RULE_STRUCTS = {
    "job": (
        "gpus",
        "gpu",
        "priority",
        "class",
        "owner",
        "project",
        "peak_watts",
        "max_duration_seconds",
        "mode",
        "phase",
        "model",
        "intended_use",
        "approved",
    ),
    "team": ("gpu_hours_left", "usd_left", "kwh_left", "kg_co2e_left"),
}


def _check_condition(when: str) -> str:
    compile_expression(when, (), RULE_STRUCTS)
    return when


Condition = Annotated[
    str, Field(min_length=1, max_length=LONGEST_EXPRESSION), AfterValidator(_check_condition)
]
Weight = Annotated[Number, Field(ge=0, le=1e6)]


class Mode(StrEnum):
    """What a rule may do: say it, warn, refuse now, or also act on what runs."""

    REPORT = "report"
    WARN = "warn"
    BLOCK = "block"
    ENFORCE = "enforce"


class Thresholds(Document):
    """When a number becomes a reason."""

    power_margin: Fraction = 0.0  # kept free on every supply and rack
    cooling_margin: Fraction = 0.0
    reading_max_age: Seconds = 30.0  # an older reading counts as the worst it could be
    throttle_horizon: Seconds = 1200.0  # heat is pressure when a device would throttle within this
    settle: Seconds = 30.0  # what one rung is given to work before the next
    clear_for: Seconds = 120.0  # how long pressure must be gone before a rung is taken back
    clear_margin: Fraction = 0.1  # … and how much headroom there must be then
    acknowledge_within: Seconds = 60.0  # an action without an answer is asked again after this
    jobs_per_response: Annotated[Whole, Field(ge=1, le=10_000)] = 4  # never all jobs at once
    restart_backoff: Seconds = 10.0
    # Swings of several jobs add up to this times the root of their squares; see docs/decisions/0039.
    swing_factor: Annotated[Number, Field(ge=1, le=10)] = 2.0


class SchedulingClass(Document):
    priority: Weight = 0.0
    max_duration: Seconds | None = None
    max_gpus: Annotated[Whole, Field(ge=0, le=10_000_000)] | None = None  # of all its jobs together
    keeps_free: Annotated[Whole, Field(ge=0, le=10_000_000)] = 0  # GPUs that no other class may take
    preempts: Flag = False  # its jobs may ask those of lesser classes to make way
    gives_way: Flag = True  # … and those of others may ask its own
    queue: QueueBound | None = None
    under_pressure: Ladder = ()

    @cached_property
    def ladder(self) -> tuple[Rung, ...]:
        return tuple([document.rung() for document in self.under_pressure])


class Quota(Document):
    """What a team may use in a week."""

    gpu_hours: Annotated[Number, Field(ge=0, le=1e9)] | None = None
    usd: Annotated[Usd, Field(ge=0)] | None = None
    kwh: Kwh | None = None
    kg_co2e: Kilograms | None = None


class Team(Document):
    quota: Quota = Quota()
    limit: Literal["hard", "soft"] = "hard"
    gpu: tuple[str, ...] = ()  # instance types it may use; empty: all
    regions: tuple[str, ...] = ()  # where its jobs may run; empty: everywhere
    max_duration: Seconds | None = None  # of one of its jobs
    weight: Annotated[Number, Field(gt=0, le=1e6)] = 1.0
    queue: QueueBound | None = None
    approvers: Name = CAPACITY_APPROVER  # the role that answers its requests for exceptions


class Rule(Document):
    name: Name
    when: Condition
    say: Annotated[str, Field(min_length=1, max_length=500)]
    mode: Mode = Mode.WARN


def _check_rules(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    names = [rule.name for rule in rules]
    flaws = [
        Flaw(at=(position, "name"), message="two rules have this name", value=repr(name))
        for position, name in enumerate(names)
        if name in names[:position]
    ]
    if flaws:
        raise FlawedError(flaws)
    return rules


class Exemption(Document):
    """A rule that does not hold for a project for a while, and who said so."""

    rule: Annotated[str, Field(min_length=1, max_length=100)]  # its name, or such as duration.team
    project: Name
    until: Time
    because: Annotated[str, Field(min_length=1, max_length=500)]
    approved_by: Name


# What a review's gates may speak of: an estimate, and what it is more than its base.
_ESTIMATED = ("gpu_hours", "cost_usd", "carbon_kg", "energy_kwh", "wall_hours", "peak_watts", "queue_minutes")
REVIEW_FIGURES = (
    *_ESTIMATED,
    "wall_p90_hours",
    "queue_p90_minutes",
    *(f"{name}_added" for name in _ESTIMATED),
)


def _check_review_gate(gate: str) -> str:
    if not compile_expression(gate, REVIEW_FIGURES).names:
        raise ValueError("a gate speaks of at least one figure, such as gpu_hours <= 100")
    return gate


ReviewGate = Annotated[
    str, Field(min_length=1, max_length=LONGEST_EXPRESSION), AfterValidator(_check_review_gate)
]


class Review(Document):
    """What a pull request hears of a change."""

    mode: Mode = Mode.BLOCK  # report and warn never fail a check; block and enforce do
    comment_above: Quota = Quota()  # no comment where nothing changes by more than this
    gates: Annotated[tuple[ReviewGate, ...], Field(max_length=100)] = ()  # what an estimate must hold


class Weights(Document):
    """What placement prefers, each against the others."""

    cost: Weight = 1.0
    carbon: Weight = 0.2  # USD per kg CO2e
    heat: Weight = 0.1
    power: Weight = 0.1
    fragmentation: Weight = 0.1
    topology: Weight = 0.0  # of each switch beyond the first that a job is spread over
    waiting: Weight = 5.0  # USD per GPU-hour of a job that finds no place; what fits is placed in any case


class Policy(Document):
    policy: Name = "default"
    required_metadata: tuple[
        Literal["model", "owner", "intended_use", "data", "params", "image", "approval"], ...
    ] = ("model", "owner")
    thresholds: Thresholds = Thresholds()
    classes: Annotated[dict[Name, SchedulingClass], Field(max_length=200)] = Field(default_factory=dict)
    teams: Annotated[dict[Name, Team], Field(max_length=10_000)] = Field(default_factory=dict)
    rules: Annotated[tuple[Rule, ...], Field(max_length=500), AfterValidator(_check_rules)] = ()
    exemptions: Annotated[tuple[Exemption, ...], Field(max_length=1000)] = ()
    review: Review = Review()
    weights: Weights = Weights()
    sharing: Sharing = Sharing()
    power_sharing: PowerSharing = PowerSharing()
    shifting: Shifting = Shifting()
    scaling: Scaling | None = None  # nodes stay awake, unless said
    resizing: Resizing | None = None  # elastic jobs run on as many GPUs as they ask for, unless said
    starts: StartsDocument = StartsDocument()
    modes: Modes = Modes()
    throttling: Throttling = Throttling()
    bursting: Bursting = Bursting()
    queue: QueueBound | None = None  # of all together; classes and teams may have their own
    under_pressure: Ladder = ()  # for a job whose owner and class wrote none

    @cached_property
    def limits_classes(self) -> bool:
        return any(one.max_gpus is not None or one.keeps_free for one in self.classes.values())

    @cached_property
    def enforces(self) -> bool:
        return any(rule.mode is Mode.ENFORCE for rule in self.rules)

    @cached_property
    def bounds_queues(self) -> bool:
        """Whether anybody may be refused, or warned, because too many wait."""
        parts = [one.queue for one in self.classes.values()] + [one.queue for one in self.teams.values()]
        return self.queue is not None or any(bound is not None for bound in parts)

    @cached_property
    def preempts(self) -> bool:
        """Whether anybody may ever be asked to make way."""
        return self.sharing.preempt or any(one.preempts for one in self.classes.values())

    roles: Roles = Field(default_factory=dict)  # who may say yes to what
    slos: Slos = ()

    @model_validator(mode="after")
    def _approvers_are_known(self) -> Policy:
        check_approvers(self.roles, {name: team.approvers for name, team in self.teams.items()})
        return self

    @model_validator(mode="after")
    def _nodes_sleep_in_one_way(self) -> Policy:
        if self.scaling is not None and self.power_sharing.asleep < 1.0:
            raise ValueError(
                "power_sharing.asleep is for nodes that fall asleep by themselves; with scaling, "
                "`sleep` of the site says what they take: leave power_sharing.asleep out"
            )
        return self

    @cached_property
    def ladder(self) -> tuple[Rung, ...]:
        return tuple([document.rung() for document in self.under_pressure])
