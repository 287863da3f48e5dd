"""Canary: what does a candidate policy decide in shadow, beside the one that counts?

It is asked about the same state at the same moment. Its answer is compared and dropped: nothing of it reaches
a journal or a world. Where it fails, that is noted, and the turn goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from wattline.control.differing import MOST_KEPT, Difference, Sides, Tally
from wattline.control.opinion import Opinion
from wattline.control.replay import TROUBLE
from wattline.control.trial import Trial
from wattline.spec.policy import Policy
from wattline.state import Decision, Snapshot, State

_MOST_ERRORS = 5
_MOST_RULED = 100  # jobs in one turn


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a candidate; two of them add up."""

    turns: int = 0
    seconds: float = 0.0  # that it took
    by_kind: dict[str, int] = {}
    by_rule: dict[str, int] = {}
    first: tuple[Difference, ...] = ()
    waited: int = 0  # jobs that asked to start
    done: dict[str, int] = {}  # to so many of the jobs
    failed_rules: dict[str, str] = {}  # that could not be evaluated: how that failed first
    errors: int = 0
    first_errors: tuple[str, ...] = ()

    @property
    def starts_nothing(self) -> bool:
        return self.waited > 0 and not self.done.get("started")

    def plus(self, other: Sighting) -> Sighting:
        """Both, this one first."""
        return Sighting(
            turns=self.turns + other.turns,
            seconds=self.seconds + other.seconds,
            by_kind=_sum(self.by_kind, other.by_kind),
            by_rule=_sum(self.by_rule, other.by_rule),
            first=(*self.first, *other.first)[:MOST_KEPT],
            waited=self.waited + other.waited,
            done=_sum(self.done, other.done),
            failed_rules={**other.failed_rules, **self.failed_rules},
            errors=self.errors + other.errors,
            first_errors=(*self.first_errors, *other.first_errors)[:_MOST_ERRORS],
        )


class Canary:
    """A candidate, and all that was seen of it."""

    def __init__(self, policy: Policy, clock: Callable[[], float] = time.perf_counter) -> None:
        self._opinion, self._clock = Opinion(policy), clock
        self._tally, self._trial = Tally(), Trial(policy, _MOST_RULED)
        self._turns, self._seconds = 0, 0.0
        self._errors: list[str] = []
        self._failed = 0

    def watch(self, state: State, decided: Decision, in_force: Policy) -> None:
        """One turn, after its decision and before that is settled."""
        began = self._clock()
        try:
            would = self._opinion.ask(state, decided.at)
            with self._opinion.remembered(state):
                self._tally.take(state, Sides(decided, would, in_force, self._opinion.policy))
                self._trial.see(Snapshot(state, decided.at), would)
        except TROUBLE as error:
            self._failed += 1
            self._opinion.forget()
            if len(self._errors) < _MOST_ERRORS:
                self._errors.append(f"{type(error).__name__}: {error}")
        self._turns += 1
        self._seconds += self._clock() - began

    def seen(self) -> Sighting:
        counts = self._trial.counts
        return Sighting(
            turns=self._turns,
            seconds=self._seconds,
            by_kind=dict(self._tally.by_kind),
            by_rule=dict(self._tally.by_rule),
            first=tuple(self._tally.first),
            waited=len(self._trial.jobs),
            done={deed: count for deed, count in counts.items() if deed != "waiting"},
            failed_rules={rule.rule: rule.failure for rule in self._trial.failed_rules},
            errors=self._failed,
            first_errors=tuple(self._errors),
        )


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}
