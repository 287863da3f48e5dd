"""The report: all that is known of a change before it runs, as one JSON. Every rendering is made of it.

What is null could not be known: `not_estimated` names it and says why. It is never a silent zero.
"""

from __future__ import annotations

from typing import Literal

import msgspec

VERSION = 1
Answer = Literal["pass", "warn", "block"]
# skip: it could not be looked at; the message says why.
Outcome = Literal["pass", "warn", "fail", "skip"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What one preflight check found about one thing, and what to do about it."""

    check: str  # its stable name, such as data.hash: docs/checks.md explains each
    outcome: Outcome
    message: str  # what was found, with the value
    subject: str = ""  # what it is about: a phase, a data entry, a file
    fix: str = ""  # what to do; always there where the outcome is fail
    file: str | None = None  # where to look, from the pipeline's folder
    line: int | None = None

    @property
    def title(self) -> str:
        return f"{self.check} {self.subject}".rstrip()


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    compute: float | None = None
    energy: float | None = None
    transfer: float | None = None
    storage: float | None = None
    total: float | None = None


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Half of what may come stays below the one, nine tenths below the other."""

    p50: float | None = None
    p90: float | None = None


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a team has left this week before this run, and in all."""

    gpu_hours: float | None = None
    gpu_hours_of: float | None = None
    usd: float | None = None
    usd_of: float | None = None
    kwh: float | None = None
    kwh_of: float | None = None
    kg_co2e: float | None = None
    kg_co2e_of: float | None = None


class Confidence(msgspec.Struct, frozen=True, kw_only=True):
    """How good estimates of this pipeline have been: of so many runs, cost off by so much on average."""

    runs: int
    cost_mape: float | None = None  # mean absolute error of the cost, as a fraction
    covered: float | None = None  # share of runs that took no longer than their p90


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    at_most: bool = False  # some phase has never been recorded and counts with the longest it may take
    gpu_hours: float | None = None
    wall_hours: float | None = None
    wall: Span = Span()  # in hours
    energy_kwh: float | None = None
    carbon_kg: float | None = None
    cost_usd: Cost = Cost()
    peak_watts: float | None = None
    queue_minutes: Span = Span()
    quota_left: Left | None = None
    confidence: Confidence | None = None
    not_estimated: dict[str, str] = {}  # by name, why


class PhaseReport(msgspec.Struct, frozen=True, kw_only=True):
    phase: str
    say: str
    starts_p50: str | None = None  # as 2026-12-01T08:00:00Z
    starts_p90: str | None = None
    wall_hours: Span = Span()
    wall_from: str = ""  # what the duration was taken from
    at_most: bool = False  # the duration is the longest it may take
    peak_watts: float | None = None
    gpu_hours: float | None = None
    cost_usd: float | None = None


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule of the policy said of one phase."""

    phase: str
    rule: str
    mode: Literal["report", "warn", "block", "enforce"]
    outcome: Literal["allow", "warn", "wait", "refuse"]
    message: str
    fix: str = ""


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a change does, verified: negative is sooner or cheaper."""

    starts_minutes: float | None = None  # until it starts, with the change
    cost_usd_delta: float | None = None
    gpu_hours_delta: float | None = None
    carbon_kg_delta: float | None = None


class Option(msgspec.Struct, frozen=True, kw_only=True):
    phase: str
    change: str
    effect: Effect = Effect()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One figure against the base."""

    base: float | None
    head: float | None
    delta: float | None  # None where one of them is not known
    fraction: float | None  # of the base; None where that is zero


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """What the change is compared with."""

    name: str  # the ref or the file
    commit: str | None = None
    pipeline: str | None = None  # None: it has none there
    estimate: Estimate | None = None
    say: str = ""  # why there is nothing to compare, or what was renamed


class Marginal(msgspec.Struct, frozen=True, kw_only=True):
    """What the last runs of a model bought."""

    metric: str
    runs: int
    usd_per_improvement: float | None = None  # of the newest runs, for one hundredth of the metric
    advice: Literal["continue", "stop", "redesign", "too early"] = "too early"
    say: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    version: int = VERSION
    pipeline: str
    file: str  # the pipeline's, from the root of its repository
    commit: str | None = None
    dirty: bool = False  # the work tree has changes that are in no commit
    at: str
    against: str  # a queue or an empty facility
    policy_name: str
    verdict: Answer
    reasons: tuple[str, ...] = ()  # why it is not pass, the most important first
    preflight: tuple[Check, ...] = ()
    estimate: Estimate = Estimate()
    phases: tuple[PhaseReport, ...] = ()
    base: Base | None = None
    diff: dict[str, Difference] = {}
    policy: tuple[Said, ...] = ()
    options: tuple[Option, ...] = ()
    marginal: Marginal | None = None
    worth_a_comment: bool = True  # false where nothing changes by more than the team wants to hear of
    emulated: bool = False  # the facility it was held against is emulated
    not_estimated: tuple[str, ...] = ()
