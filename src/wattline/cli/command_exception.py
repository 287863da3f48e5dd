"""The exception commands: ask for more than the policy allows, answer, and see what was asked for."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console

from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.cli.remote import Server, find_server, path_part
from wattline.errors import UsageError
from wattline.plane.excepting import describe_exception, quantity_of_rule
from wattline.plane.finding import View, open_view
from wattline.plane.petitioning import (
    answering,
    asking,
    describe_handed,
    exceptions_of,
    find_asked,
    find_exception,
)
from wattline.plane.session import user
from wattline.plane.telling import tell
from wattline.policy.permitting.exceptions import NAMES, format_amount, role_for
from wattline.spec import Policy
from wattline.spec.quantities import check_name
from wattline.state import Answer, PolicyException

PATH = "/api/v1/exceptions"
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
    server = _server_for(name)
    if server is not None:
        body = {"rule": rule, "project": project, "amount": amount, "until": until, "because": because}
        server.show_posted(PATH, body, as_json=as_json)
        return 0
    with open_view() as view:
        policy = view.session.policy()
        event = asking(
            view.state,
            policy,
            actor=_named(name),
            source=user(),
            key=uuid.uuid4().hex,
            project=project,
            rule=rule,
            amount=amount,
            until=until,
            because=because,
        )
        journaled = tell(view.session, event)
        found = _awaited(view, event.key)
        if as_json:
            print_json(describe_handed(found, event.at, journaled=journaled or found is not None))
        else:
            show_asked(stdout_console(), policy, project, found)
    return 0


def answer_exception(exception: str, *, approved: bool, name: str | None, note: str, as_json: bool) -> int:
    server = _server_for(name)
    if server is not None:
        path = f"{PATH}/{path_part('request', exception)}/{'approve' if approved else 'deny'}"
        server.show_posted(path, {"note": note}, as_json=as_json)
        return 0
    with open_view() as view:
        who = _named(name)
        known = find_exception(view.state, exception)
        event = answering(
            view.state,
            view.session.policy(),
            known,
            actor=who,
            source=user(),
            approved=approved,
            note=note,
        )
        journaled = tell(view.session, event)
        known = view.state.exceptions[known.id] if journaled else known
        if as_json:
            print_json(describe_handed(known, event.at, journaled=journaled))
            return 0
        console = stdout_console()
        show_answered(console, known, Answer.APPROVED if approved else Answer.DENIED, who)
        console.print(
            plain(f"{who} is taken at their word; the journal also keeps that {user()} typed it"), style="dim"
        )
    return 0


def list_exceptions(project: str | None, *, as_json: bool) -> int:
    server = find_server()
    if server is not None:
        server.show(PATH, as_json=as_json, **({} if project is None else {"project": project}))
        return 0
    with open_view() as view:
        now, found = time.time(), exceptions_of(view.state, project)
        if as_json:
            print_json({"exceptions": [describe_exception(each, now) for each in found]})
        else:
            show_exceptions(stdout_console(), found, now)
    return 0


def show_asked(console: Console, policy: Policy, project: str, found: PolicyException | None) -> None:
    if found is None:
        console.print("asked; the process that conducts here gives it its number: wattline exception list")
    else:
        console.print(plain(f"{found.id}: {wanted(found)} until {moment(found.until)}"))
    console.print(plain(_who_answers(policy, project, found.id if found else "ID")), style="dim")


def show_answered(console: Console, known: PolicyException, given: Answer, who: str) -> None:
    console.print(plain(f"{known.id} is {given} by {who}: {wanted(known)} until {moment(known.until)}"))
    if known.answer is Answer.NONE:
        console.print("the process that conducts here writes it into the journal", style="dim")


def show_exceptions(console: Console, found: Sequence[PolicyException], now: float) -> None:
    if not found:
        console.print("nobody asked for an exception here")
        return
    table = columns("id", "state", "by", "until", "what", "because")
    for each in found:
        state = each.standing(now)
        by = f"{each.asked_by} → {each.answered_by}" if each.answered_by else each.asked_by
        table.add_row(
            each.id, state, plain(by), moment(each.until), plain(wanted(each)), plain(each.because),
            style=_STYLES[state],
        )  # fmt: skip
    console.print(table)


def wanted(exception: PolicyException) -> str:
    """What an exception is about, in a few words."""
    quantity = quantity_of_rule(exception.rule)
    if quantity is None:
        return f"{exception.project} without {exception.rule}"
    return f"{exception.project} {format_amount(exception.amount)} {NAMES[quantity]} more a week"


def moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def _named(name: str | None) -> str:
    try:
        return check_name(name or user())
    except ValueError as error:
        raise UsageError(f"--as {(name or user())[:100]!r}: {error}") from error


def _server_for(name: str | None) -> Server | None:
    """The server to ask; there a token says who speaks."""
    server = find_server()
    if server is not None and name is not None:
        raise UsageError(
            f"--as {name[:100]!r}: a server knows you by your token",
            hint="leave --as out; the policy's roles name tokens there",
        )
    return server


def _awaited(view: View, key: str) -> PolicyException | None:
    """The request once it has its number, if whoever conducts takes it in soon."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (found := find_asked(view.state, key)) is None and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
        view.session.refresh()
    return found


def _who_answers(policy: Policy, project: str, exception: str) -> str:
    role = role_for(policy, project)
    people = policy.roles.get(role, ())
    if not people:
        return f"nobody can approve it yet: the policy's roles name no {role}"
    return f"{role} answers ({', '.join(people)}): wattline exception approve {exception}"
