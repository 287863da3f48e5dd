"""Exceptions: who asked for one, who answered, and which stand?

One is asked for and answered by events. An answer changes nothing where nobody asked, where one was given
before, where it comes after the end, or where it is the asker's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from wattline.enums import plain_members
from wattline.state.event import ExceptionAnswered, ExceptionAsked


@plain_members
class Answer(StrEnum):
    NONE = "asked"
    APPROVED = "approved"
    DENIED = "denied"


class PolicyException(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule that does not hold for a project for a while, or a quota that is larger for a while."""

    id: str  # "ex-3": the third that was asked for
    key: str
    project: str
    rule: str
    amount: float = 0.0  # on top of every week's quota, in its unit; 0: the rule does not hold at all
    until: float
    because: str
    asked_by: str
    asked_at: float
    answer: Answer = Answer.NONE
    answered_by: str = ""
    answered_at: float | None = None
    role: str = ""
    note: str = ""

    def stands(self, at: float) -> bool:
        return self.answer is Answer.APPROVED and at < self.until

    def standing(self, at: float) -> str:
        """How it stands, in a word: one that has ended is neither approved nor open any more."""
        return "expired" if self.answer is not Answer.DENIED and at >= self.until else self.answer.value


def exception_asked(known: Mapping[str, PolicyException], event: ExceptionAsked) -> PolicyException | None:
    """What is asked for, by the next free number; None where this very request was heard before."""
    if any(exception.key == event.key for exception in known.values()):
        return None
    return PolicyException(
        id=f"ex-{len(known) + 1}",
        key=event.key,
        project=event.project,
        rule=event.rule,
        amount=event.amount,
        until=event.until,
        because=event.because,
        asked_by=event.actor,
        asked_at=event.at,
    )


def exception_answered(
    known: Mapping[str, PolicyException], event: ExceptionAnswered
) -> PolicyException | None:
    """The same exception with its answer; None where the answer does not count."""
    exception = known.get(event.exception)
    if exception is None or exception.answer is not Answer.NONE:
        return None
    if event.at >= exception.until or event.actor == exception.asked_by:
        return None
    return msgspec.structs.replace(
        exception,
        answer=Answer.APPROVED if event.approved else Answer.DENIED,
        answered_by=event.actor,
        answered_at=event.at,
        role=event.role,
        note=event.note,
    )


def standing_of(known: Iterable[PolicyException], project: str, at: float) -> tuple[PolicyException, ...]:
    """Those of a project that stand at a time, in the order they were asked for."""
    return tuple([each for each in known if each.project == project and each.stands(at)])
