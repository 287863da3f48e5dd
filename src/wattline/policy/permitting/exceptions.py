"""Exceptions: what do approved ones allow a project now, and who may answer a request for one?"""

from __future__ import annotations

from datetime import UTC, datetime

from wattline.spec.policy import Policy
from wattline.spec.roles import CAPACITY_APPROVER
from wattline.state import Answer, Outcome, PolicyException, Snapshot, Verdict

# What quotas are of, the unit that names of numbers end with, and the rule that judges it.
QUANTITIES = (
    ("gpu_hours", "gpu_hours", "quota.gpu_hours"),
    ("usd", "usd", "budget.usd"),
    ("kwh", "kwh", "budget.kwh"),
    ("kg_co2e", "kg", "budget.kg_co2e"),
)
BUDGETS = frozenset(rule for _, _, rule in QUANTITIES)
NAMES = {"gpu_hours": "GPU-hours", "usd": "USD", "kwh": "kWh", "kg_co2e": "kg CO2e"}
# Rules that are no document's, and may be waived: what a job asks for, not where it is put.
WAIVABLE = ("duration.class", "duration.team", "duration.missing")


def format_amount(value: float) -> str:
    """Such as 12,500 or 0.25: whole from a hundred on, because people add these up."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def standing_exceptions(snapshot: Snapshot, project: str) -> tuple[PolicyException, ...]:
    """Those of a project that were approved and have not ended."""
    approved = snapshot.exceptions.get(project, ())
    return tuple([exception for exception in approved if exception.stands(snapshot.at)])


def granted(snapshot: Snapshot, project: str, rule: str) -> tuple[PolicyException, ...]:
    """Those that add to what a quota allows; the amounts of several add up."""
    if not snapshot.exceptions:
        return ()
    standing = standing_exceptions(snapshot, project)
    return tuple([each for each in standing if each.rule == rule and each.amount > 0])


def limit_of(snapshot: Snapshot, policy: Policy, project: str, quantity: str) -> float | None:
    """What a team may use of something this week, exceptions included; None: as much as it likes."""
    team = policy.teams.get(project)
    limit: float | None = getattr(team.quota, quantity) if team is not None else None
    if limit is None:
        return None
    rule = next(rule for name, _, rule in QUANTITIES if name == quantity)
    return limit + sum(exception.amount for exception in granted(snapshot, project, rule))


def say_allowed(exceptions: tuple[PolicyException, ...]) -> str:
    """ "allowed by exception ex-3 of grace until 2026-11-23 12:00 UTC: a deadline"."""
    return "; ".join(
        f"allowed by exception {each.id} of {each.answered_by} until "
        f"{datetime.fromtimestamp(each.until, UTC):%Y-%m-%d %H:%M} UTC: {each.because}"
        for each in exceptions
    )


def role_for(policy: Policy, project: str) -> str:
    """The role that answers a project's requests."""
    team = policy.teams.get(project)
    return CAPACITY_APPROVER if team is None else team.approvers


def judge_answer(policy: Policy, exception: PolicyException, name: str, at: float) -> Verdict:
    """May this person answer this request now? Whoever asks has to know who they are."""
    role = role_for(policy, exception.project)
    people = policy.roles.get(role, ())
    if exception.answer is not Answer.NONE:
        return _refuse(
            "exception.answered", exception, f"it was {exception.answer} by {exception.answered_by}", ""
        )
    if at >= exception.until:
        return _refuse("exception.expired", exception, "it has ended", "ask for it anew")
    if name == exception.asked_by:
        return _refuse("exception.self", exception, f"{name} asked for it", f"let another {role} answer")
    if name not in people:
        known = f"{role} is {', '.join(people)}" if people else f"the policy's roles name nobody as {role}"
        return _refuse("exception.role", exception, f"{name} is no {role}; {known}", f"let a {role} answer")
    return Verdict.allow("exception.role", exception.id)


def _refuse(rule: str, exception: PolicyException, say: str, change: str) -> Verdict:
    return Verdict(rule=rule, subject=exception.id, outcome=Outcome.REFUSE, say=say, change=change)
