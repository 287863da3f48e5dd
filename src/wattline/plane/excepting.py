"""May a request for an exception, or the answer to one, go into the journal?

Commands ask before they hand an event over, and whoever writes the journal asks again: what lies in the inbox
was written by anybody who may write there. On one machine people are taken at their word; a server knows them
by their token. What they may do is held against the policy's roles.
"""

from __future__ import annotations

import math
from datetime import datetime

from wattline import units
from wattline.errors import UsageError
from wattline.plane.moments import iso
from wattline.plane.told import ExceptionTold
from wattline.policy.permitting.exceptions import QUANTITIES, WAIVABLE, judge_answer
from wattline.spec import Policy
from wattline.spec.nearest import nearest
from wattline.spec.quantities import check_name
from wattline.state import ExceptionAnswered, ExceptionAsked, PolicyException, State

QUOTA_ALIAS = "quota"
LONGEST_SECONDS = 366 * 86400.0
_LONGEST_TEXT = 500
_LONGEST_KEY = 64
_MOST_AMOUNT = 1e12
_KINDS = {"budget.usd": units.MONEY, "budget.kwh": units.ENERGY, "budget.kg_co2e": units.MASS}
_QUOTAS = {rule: quantity for quantity, _, rule in QUANTITIES}


def quantity_of_rule(rule: str) -> str | None:
    """What an exception from this rule has an amount of; None: it has none."""
    return _QUOTAS.get(rule)


def trouble_of(event: ExceptionAsked | ExceptionAnswered, state: State | None, policy: Policy) -> str:
    """What speaks against an event; nothing where it may be journaled."""
    if isinstance(event, ExceptionAsked):
        return _trouble_of_asking(event, policy)
    known = state.exceptions.get(event.exception) if state is not None else None
    if known is None:
        return f"answers {event.exception[:_LONGEST_KEY]!r}, which nobody asked for"
    if len(event.note) > _LONGEST_TEXT:
        return "has too long a note"
    verdict = judge_answer(policy, known, event.actor, event.at)
    return "" if verdict.allows else f"answers {known.id} against {verdict.rule}: {verdict.say}"


def _trouble_of_asking(event: ExceptionAsked, policy: Policy) -> str:
    try:
        check_name(event.project)
        check_rule(policy, event.project, event.rule)
    except (UsageError, ValueError) as error:
        return f"asks for what cannot be: {error}"
    if not event.because.strip():
        return "gives no reason, and an approver reads nothing else: say why"
    if len(event.because) > _LONGEST_TEXT:
        return f"says too much: {len(event.because)} characters, {_LONGEST_TEXT} at most"
    if not 0 < len(event.key) <= _LONGEST_KEY:
        return f"has a key that is not 1 to {_LONGEST_KEY} characters"
    if not (math.isfinite(event.until) and event.at < event.until <= event.at + LONGEST_SECONDS):
        return "ends before it begins, or after more than a year"
    most = _MOST_AMOUNT if event.rule in _QUOTAS else 0.0
    if not (math.isfinite(event.amount) and 0 <= event.amount <= most):
        return f"asks for an amount that is not between 0 and {most:g}"
    return "" if event.amount or event.rule not in _QUOTAS else "names no amount"


def check_rule(policy: Policy, project: str, rule: str) -> str:
    """The rule that was meant. Raises UsageError where there is none, or the project has no such quota."""
    rule = "quota.gpu_hours" if rule == QUOTA_ALIAS else rule.removeprefix("rule.")
    if rule not in _QUOTAS:
        return _check_waivable(policy, rule)
    team = policy.teams.get(project)
    if team is None:
        close = nearest(project, list(policy.teams))
        known = ", ".join(list(policy.teams)[:5]) or "none"
        raise UsageError(
            f"project {project!r} has no quota in the policy {policy.policy}",
            hint=f"did you mean {close}?" if close else f"teams with one: {known}",
        )
    if getattr(team.quota, _QUOTAS[rule]) is None:
        has = [known for known, quantity in _QUOTAS.items() if getattr(team.quota, quantity) is not None]
        raise UsageError(
            f"{project} has no limit by {rule}", hint=f"it has {', '.join(has)}" if has else "it has none"
        )
    return rule


def _check_waivable(policy: Policy, rule: str) -> str:
    known = [*[each.name for each in policy.rules], *WAIVABLE, QUOTA_ALIAS, *_QUOTAS]
    if rule not in known:
        close = nearest(rule, known)
        raise UsageError(
            f"rule {rule[:100]!r} is not known in the policy {policy.policy}",
            hint=f"did you mean {close}?" if close else f"known here: {', '.join(known)}",
        )
    return rule


def parse_amount(rule: str, text: str | None) -> float:
    """How much more of a quota, in its unit; nothing of a rule that does not hold at all."""
    if rule not in _QUOTAS:
        if text is not None:
            raise UsageError(f"--amount {text!r}: {rule} has no amount; it holds or not", hint="leave it out")
        return 0.0
    if text is None:
        raise UsageError(
            f"--amount is missing: how much more than {rule} allows?", hint="such as --amount 500"
        )
    try:
        kind = _KINDS.get(rule)
        amount = float(text) if kind is None else kind.parse(text)
    except ValueError as error:
        raise UsageError(f"--amount {text[:100]!r}: {error}") from error
    if not 0 < amount <= _MOST_AMOUNT:
        raise UsageError(f"--amount {text[:100]!r}: an amount is above 0 and at most {_MOST_AMOUNT:g}")
    return amount


def parse_until(text: str, now: float) -> float:
    """A time with its zone, or how long from now."""
    try:
        until = now + units.DURATION.parse(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise UsageError(
                f"--until {text[:100]!r}: neither a time nor a duration",
                hint="such as 2026-12-01T08:00Z, or 3d",
            ) from error
        if moment.tzinfo is None:
            raise UsageError(
                f"--until {text!r}: a time says its zone", hint="such as 2026-12-01T08:00Z"
            ) from None
        until = moment.timestamp()
    if not now < until <= now + LONGEST_SECONDS:
        raise UsageError(f"--until {text!r}: an exception ends within a year from now, and not before")
    return until


def describe_exception(exception: PolicyException, now: float) -> ExceptionTold:
    return {
        "id": exception.id,
        "project": exception.project,
        "rule": exception.rule,
        "amount": exception.amount or None,
        "quantity": quantity_of_rule(exception.rule),
        "until": iso(exception.until),
        "because": exception.because,
        "state": exception.standing(now),
        "asked_by": exception.asked_by,
        "asked_at": iso(exception.asked_at),
        "answered_by": exception.answered_by or None,
        "answered_at": iso(exception.answered_at),
        "role": exception.role or None,
        "note": exception.note,
    }
