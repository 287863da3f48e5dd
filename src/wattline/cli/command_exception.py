"""The exception commands: ask for more than the policy allows, answer, and see what was asked for."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime

from wattline.cli.excepting import check_rule, parse_amount, parse_until, quantity_of_rule, trouble_of
from wattline.cli.finding import View, open_view, unknown
from wattline.cli.printing import columns, iso, plain, print_json, stdout_console
from wattline.cli.session import user
from wattline.cli.telling import tell
from wattline.errors import RefusedError, UsageError
from wattline.policy.exceptions import NAMES, format_amount, judge_answer, role_for
from wattline.spec import Policy
from wattline.spec.quantities import check_name
from wattline.state import ExceptionAnswered, ExceptionAsked, PolicyException

_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_STYLES = {"approved": "green", "denied": "red", "expired": "dim", "asked": "yellow"}


def request_exception(
    *,
    rule: str,
    project: str,
    amount: str | None,
    until: str,
    because: str,
    name: str | None,
    as_json: bool,
) -> int:
    with open_view() as view:
        now, policy = time.time(), view.session.policy()
        rule = check_rule(policy, project, rule)
        event = ExceptionAsked(
            at=now,
            actor=_named(name),
            project=project,
            source=user(),
            key=uuid.uuid4().hex,
            rule=rule,
            amount=parse_amount(rule, amount),
            until=parse_until(until, now),
            because=because,
        )
        trouble = trouble_of(event, view.state, policy)
        if trouble:
            raise UsageError(f"the request {trouble}")
        journaled = tell(view.session, event)
        found = _awaited(view, event.key)
        if as_json:
            described = {"id": None} if found is None else describe_exception(found, now)
            print_json({**described, "journaled": journaled or found is not None})
            return 0
        console = stdout_console()
        if found is None:
            console.print(
                "asked; the process that conducts here gives it its number: wattline exception list"
            )
        else:
            console.print(plain(f"{found.id}: {wanted(found)} until {moment(found.until)}"))
        console.print(plain(_who_answers(policy, project, found.id if found else "ID")), style="dim")
    return 0


def answer_exception(exception: str, *, approved: bool, name: str | None, note: str, as_json: bool) -> int:
    with open_view() as view:
        now, policy, who = time.time(), view.session.policy(), _named(name)
        known = view.state.exceptions.get(exception)
        if known is None:
            raise unknown("exception", exception, view.state.exceptions)
        verdict = judge_answer(policy, known, who, now)
        if not verdict.allows:
            raise RefusedError(f"{known.id}: {verdict.say} ({verdict.rule})", hint=verdict.change or None)
        event = ExceptionAnswered(
            at=now,
            actor=who,
            project=known.project,
            source=user(),
            exception=known.id,
            approved=approved,
            role=role_for(policy, known.project),
            note=note,
        )
        trouble = trouble_of(event, view.state, policy)
        if trouble:
            raise UsageError(f"the answer {trouble}")
        journaled = tell(view.session, event)
        if as_json:
            told = view.state.exceptions[known.id] if journaled else known
            print_json({**describe_exception(told, now), "journaled": journaled})
            return 0
        console = stdout_console()
        verb = "approved" if approved else "denied"
        console.print(plain(f"{known.id} is {verb} by {who}: {wanted(known)} until {moment(known.until)}"))
        console.print(
            plain(f"{who} is taken at their word; the journal also keeps that {user()} typed it"), style="dim"
        )
        if not journaled:
            console.print("the process that conducts here writes it into the journal", style="dim")
    return 0


def list_exceptions(project: str | None, *, as_json: bool) -> int:
    with open_view() as view:
        now = time.time()
        found = [
            each for each in view.state.exceptions.values() if project is None or each.project == project
        ]
        if as_json:
            print_json({"exceptions": [describe_exception(each, now) for each in reversed(found)]})
            return 0
        console = stdout_console()
        if not found:
            console.print("nobody asked for an exception here")
            return 0
        table = columns("id", "state", "by", "until", "what", "because")
        for each in reversed(found):
            state = each.standing(now)
            by = f"{each.asked_by} → {each.answered_by}" if each.answered_by else each.asked_by
            table.add_row(
                each.id, state, plain(by), moment(each.until), plain(wanted(each)), plain(each.because),
                style=_STYLES[state],
            )  # fmt: skip
        console.print(table)
    return 0


def wanted(exception: PolicyException) -> str:
    """What an exception is about, in a few words."""
    quantity = quantity_of_rule(exception.rule)
    if quantity is None:
        return f"{exception.project} without {exception.rule}"
    return f"{exception.project} {format_amount(exception.amount)} {NAMES[quantity]} more a week"


def moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def describe_exception(exception: PolicyException, now: float) -> dict[str, object]:
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


def _named(name: str | None) -> str:
    try:
        return check_name(name or user())
    except ValueError as error:
        raise UsageError(f"--as {(name or user())[:100]!r}: {error}") from error


def _awaited(view: View, key: str) -> PolicyException | None:
    """The request once it has its number, if whoever conducts takes it in soon."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        for exception in view.state.exceptions.values():
            if exception.key == key:
                return exception
        if time.monotonic() > deadline:
            return None
        time.sleep(_LOOK_SECONDS)
        view.session.refresh()


def _who_answers(policy: Policy, project: str, exception: str) -> str:
    role = role_for(policy, project)
    people = policy.roles.get(role, ())
    if not people:
        return f"nobody can approve it yet: the policy's roles name no {role}"
    return f"{role} answers ({', '.join(people)}): wattline exception approve {exception} --as NAME"
