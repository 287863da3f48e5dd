"""How does what a person wrote become a request for an exception, or the answer to one?

The same for the command line, which takes people at their word, and for a server, which knows them by their
token.
"""

from __future__ import annotations

import time

from wattline.errors import RefusedError, UsageError
from wattline.plane.excepting import check_rule, describe_exception, parse_amount, parse_until, trouble_of
from wattline.plane.finding import unknown
from wattline.plane.told import ExceptionHanded
from wattline.policy.permitting.exceptions import judge_answer, role_for
from wattline.spec import Policy
from wattline.state import ExceptionAnswered, ExceptionAsked, PolicyException, State


def asking(
    state: State,
    policy: Policy,
    *,
    actor: str,
    source: str,
    key: str,
    project: str,
    rule: str,
    amount: str | None,
    until: str,
    because: str,
) -> ExceptionAsked:
    """The event that asks for an exception, from what a person wrote; raises where it cannot be one."""
    now, meant = time.time(), check_rule(policy, project, rule)
    event = ExceptionAsked(
        at=now,
        actor=actor,
        project=project,
        source=source,
        key=key,
        rule=meant,
        amount=parse_amount(meant, amount),
        until=parse_until(until, now),
        because=because,
    )
    trouble = trouble_of(event, state, policy)
    if trouble:
        raise UsageError(f"the request {trouble}")
    return event


def find_exception(state: State, name: str) -> PolicyException:
    known = state.exceptions.get(name)
    if known is None:
        raise unknown("exception", name, state.exceptions)
    return known


def answering(
    state: State,
    policy: Policy,
    known: PolicyException,
    *,
    actor: str,
    source: str,
    approved: bool,
    note: str,
) -> ExceptionAnswered:
    """The event that answers one; raises where this person may not, or not any more."""
    now = time.time()
    verdict = judge_answer(policy, known, actor, now)
    if not verdict.allows:
        raise RefusedError(f"{known.id}: {verdict.say} ({verdict.rule})", hint=verdict.change or None)
    event = ExceptionAnswered(
        at=now,
        actor=actor,
        project=known.project,
        source=source,
        exception=known.id,
        approved=approved,
        role=role_for(policy, known.project),
        note=note,
    )
    trouble = trouble_of(event, state, policy)
    if trouble:
        raise UsageError(f"the answer {trouble}")
    return event


def exceptions_of(state: State, project: str | None) -> list[PolicyException]:
    """All that were asked for, the newest first."""
    found = [each for each in state.exceptions.values() if project is None or each.project == project]
    return found[::-1]


def find_asked(state: State, key: str) -> PolicyException | None:
    """The request of this key, once it has its number."""
    return next((each for each in state.exceptions.values() if each.key == key), None)


def describe_handed(known: PolicyException | None, now: float, *, journaled: bool) -> ExceptionHanded:
    if known is None:
        return {"id": None, "journaled": journaled}
    return {**describe_exception(known, now), "journaled": journaled}
