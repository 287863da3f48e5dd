"""Reasons as data: what a rule said, of what, with which numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from wattline.enums import plain_members
from wattline.units import format_celsius, format_named, format_watts, unit_of


@plain_members
class Outcome(StrEnum):
    """From good to final."""

    ALLOW = "allow"
    WARN = "warn"  # allowed, and worth saying
    PRESS = "press"  # runs, and must give way
    WAIT = "wait"  # not now
    REFUSE = "refuse"  # never, as asked


_VERBS = {
    Outcome.ALLOW: "allows it",
    Outcome.WARN: "warns",
    Outcome.PRESS: "presses",
    Outcome.WAIT: "makes it wait",
    Outcome.REFUSE: "refuses it",
}


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule's answer about one subject."""

    rule: str  # "power.rack"
    subject: str  # "zurich/r1"
    outcome: Outcome
    job: str = ""
    numbers: dict[str, float] = {}  # each name ends with its unit
    say: str = ""  # what numbers cannot tell
    change: str = ""  # what would change it

    @staticmethod
    def allow(rule: str, subject: str, **numbers: float) -> Verdict:
        return Verdict(rule=rule, subject=subject, outcome=Outcome.ALLOW, numbers=numbers)

    @staticmethod
    def wait(rule: str, subject: str, change: str = "", **numbers: float) -> Verdict:
        return Verdict(rule=rule, subject=subject, outcome=Outcome.WAIT, numbers=numbers, change=change)

    @staticmethod
    def refuse(rule: str, subject: str, change: str = "", **numbers: float) -> Verdict:
        return Verdict(rule=rule, subject=subject, outcome=Outcome.REFUSE, numbers=numbers, change=change)

    @property
    def allows(self) -> bool:
        return self.outcome in (Outcome.ALLOW, Outcome.WARN)

    @property
    def short_by(self) -> tuple[float, str] | None:
        """The shortfall and its unit, where the rule found one."""
        for name, value in self.numbers.items():
            if name.startswith("short_by_"):
                return value, unit_of(name)
        return None

    def sentence(self) -> str:
        """The verdict in words: "power.rack of zurich/r1 makes it wait: short by 1.2 kW"."""
        facts = [f"{_words(name)} {format_named(name, value)}" for name, value in self.numbers.items()]
        parts = [part for part in (self.say, ", ".join(facts)) if part]
        told = f"{self.rule} of {self.subject} {_VERBS[self.outcome]}"
        return f"{told}: {'; '.join(parts)}" if parts else told


def _words(name: str) -> str:
    unit = unit_of(name)
    return name.removesuffix(unit).rstrip("_").replace("_", " ") or name.replace("_", " ")


def say_tightest(verdicts: Sequence[Verdict]) -> str:
    """Of what allowed a beginning: the least that was left of power and cooling, and the heat predicted."""
    parts, least = [], min(verdicts, key=lambda one: one.numbers.get("left_watts", math.inf), default=None)
    if least is not None and "left_watts" in least.numbers:
        parts.append(f"{least.subject} has {format_watts(least.numbers['left_watts'])} left")
    for verdict in verdicts:
        if "predicted_celsius" in verdict.numbers:
            predicted, limit = verdict.numbers["predicted_celsius"], verdict.numbers["limit_celsius"]
            parts.append(f"GPUs at {format_celsius(predicted)} of {format_celsius(limit)} there")
    return "; ".join(parts)
