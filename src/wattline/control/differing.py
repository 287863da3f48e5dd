"""Differing: where do two decisions about the same state part, in which jobs, and by which rule?

Only what would be done counts. Two policies that both let a job wait agree, whatever each of them gives as
its reason; asking again for what is in flight already is nothing new either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from functools import cached_property

import msgspec

from wattline.policy import dominant, judge_request
from wattline.spec.policy import Policy
from wattline.state import (
    BEGINNINGS,
    Action,
    ActionKind,
    Decision,
    Job,
    JobState,
    Snapshot,
    State,
    Verdict,
    project,
)
from wattline.units import format_share

_KEPT_BACK = (JobState.WAITING, JobState.PAUSED)
WAIT, NOTHING = "wait", "nothing"  # what is done about a job without any action
PLACE = "place"  # both begin it, each where it scores best
_UNSAID = "none said"
_MOST_KNOWN = 100_000
MOST_KEPT = 20


class Stance(msgspec.Struct, frozen=True, kw_only=True):
    """What one decision does about a job, and the rule it goes by."""

    does: str  # an action's name; wait; or nothing
    place: str = ""
    fraction: float | None = None  # of cap_power and shrink_batch
    rule: str = ""
    subject: str = ""
    because: str = ""

    def words(self) -> str:
        if self.does in BEGINNINGS:
            return f"{self.does} at {self.place}"
        return self.does if self.fraction is None else f"{self.does} to {format_share(self.fraction)}"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One job about which two policies would do different things at the same moment."""

    at: float
    job: str
    kind: str  # such as "start → refuse"
    decided: Stance
    would: Stance
    rule: str  # what makes the difference; place where only the score of places does
    say: str
    seq: int = 0  # of the journal's record; 0: not recorded


class Sides(msgspec.Struct, frozen=True):
    """Two decisions about one state, before either is settled, and who made them."""

    decided: Decision
    would: Decision
    decided_by: Policy
    would_by: Policy


class Tally:
    """What differs, each difference told once for each attempt: who waits is decided about at every turn.

    The first are told in full, and those of jobs that are `asked` about. Others are only counted: there may
    be ten thousand of them, and a turn must not wait for their reasons.
    """

    def __init__(self, asked: Container[str] = ()) -> None:
        self.by_kind: Counter[str] = Counter()
        self.by_rule: Counter[str] = Counter()
        self.jobs: set[str] = set()
        self.first: list[Difference] = []
        self._asked = asked
        self._known: set[tuple[str, int, str]] = set()

    @property
    def count(self) -> int:
        return self.by_kind.total()

    def take(self, state: State, sides: Sides, seq: int = 0) -> list[Difference]:
        """Count every job about which something else would be done; what is news, as far as it is told."""
        ours, theirs = (
            _Side(state, sides.decided, sides.decided_by),
            _Side(state, sides.would, sides.would_by),
        )
        news = []
        for job_id in dict.fromkeys((*ours.actions, *theirs.actions)):
            mine, other = ours.actions.get(job_id), theirs.actions.get(job_id)
            if mine is not None and other is not None and _gist(mine) == _gist(other):
                continue
            job = state.jobs[job_id]
            kind = _kind(_does(job, mine), _does(job, other))
            if not self._is_news((job_id, job.attempt, kind)):
                continue
            is_first = len(self.first) < MOST_KEPT
            if is_first or job_id in self._asked:
                stances = ours.stance(job), theirs.stance(job)
                difference = _difference(job_id, kind, stances, sides.decided.at, seq)
                news.append(difference)
                self.first += [difference] if is_first else []
                self._count(job_id, kind, difference.rule)
            else:
                reason = theirs.said_against(job) or ours.said_against(job)
                self._count(job_id, kind, reason.rule if reason is not None else "")
        return news

    def _is_news(self, known: tuple[str, int, str]) -> bool:
        if known in self._known:
            return False
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
            self.jobs.clear()
        self._known.add(known)
        return True

    def _count(self, job_id: str, kind: str, rule: str) -> None:
        self.by_kind[kind] += 1
        self.by_rule[rule or _UNSAID] += 1
        self.jobs.add(job_id)


class _Side:
    """One of two decisions about a state, and its reasons."""

    def __init__(self, state: State, decision: Decision, policy: Policy) -> None:
        self._state, self._decision, self._policy = state, decision, policy
        # The last word on each job; a repeat of what is in flight is none.
        self.actions = {
            action.job: action for action in decision.actions if action.job and action.id not in state.flights
        }

    @cached_property
    def _said(self) -> dict[str, list[Verdict]]:
        said: dict[str, list[Verdict]] = {}
        for verdict in self._decision.verdicts:
            said.setdefault(verdict.job, []).append(verdict)
        return said

    @cached_property
    def _after(self) -> Snapshot:
        """Once all that begins has begun."""
        begun = [action for action in self._decision.actions if action.kind in BEGINNINGS]
        return project(Snapshot(self._state, self._decision.at), begun)

    def said_against(self, job: Job) -> Verdict | None:
        """What this very decision gives as its reason."""
        return dominant(tuple(self._said.get(job.id, ())))

    def stance(self, job: Job) -> Stance:
        action = self.actions.get(job.id)
        does = _does(job, action)
        if action is not None and action.kind in BEGINNINGS:
            return Stance(does=does, place=str(action.place))
        reason = self.said_against(job)
        if action is None:
            if does == WAIT and reason is None:
                reason = self._why_waits(job)
            return _reasoned(does, reason)
        fractional = action.kind in (ActionKind.CAP_POWER, ActionKind.SHRINK_BATCH)
        told = _reasoned(does, reason)
        return msgspec.structs.replace(
            told, fraction=action.fraction if fractional else None, because=action.because or told.because
        )

    def _why_waits(self, job: Job) -> Verdict | None:
        """A decision says only what is new; this is what it would say of a job that it did not look at."""
        if job.asked:
            return None
        return dominant(judge_request(self._after, self._policy, job.remainder, None).verdicts)


def _gist(action: Action) -> tuple[object, ...]:
    return (action.kind, action.place, action.fraction)


def _does(job: Job, action: Action | None) -> str:
    if action is not None:
        return action.kind.value
    return WAIT if job.state in _KEPT_BACK else NOTHING


def _kind(decided: str, would: str) -> str:
    elsewhere = decided in BEGINNINGS and would in BEGINNINGS
    return f"{decided} → {'elsewhere' if elsewhere else would}"


def _difference(job_id: str, kind: str, stances: tuple[Stance, Stance], at: float, seq: int) -> Difference:
    decided, would = stances
    elsewhere = decided.does in BEGINNINGS and would.does in BEGINNINGS
    telling = would if would.rule else decided
    return Difference(
        at=at,
        job=job_id,
        kind=kind,
        decided=decided,
        would=would,
        rule=PLACE if elsewhere else telling.rule,
        say=_sentence(job_id, decided, would, "" if elsewhere else telling.because),
        seq=seq,
    )


def _reasoned(does: str, reason: Verdict | None) -> Stance:
    if reason is None:
        return Stance(does=does)
    return Stance(does=does, rule=reason.rule, subject=reason.subject, because=reason.sentence())


def _sentence(job_id: str, decided: Stance, would: Stance, because: str) -> str:
    text = f"{job_id}: {decided.words()}; would be: {would.words()}"
    return f"{text}, because {because}" if because else text
