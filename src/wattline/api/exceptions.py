"""How does somebody ask a server for more than a policy allows, and who answers? The token says who speaks.

The policy's roles name people; here those are names of tokens. Nobody answers their own request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, TypedDict

import msgspec
from msgspec import Meta
from starlette.responses import PlainTextResponse, Response

from wattline.api.call import Call, Endpoint, Parameter, Text, answer, wait_for
from wattline.api.door import LOOKS, STEERS
from wattline.api.repeating import KEY, name_message, scope_of
from wattline.plane.excepting import describe_exception
from wattline.plane.finding import View
from wattline.plane.petitioning import (
    answering,
    asking,
    describe_handed,
    exceptions_of,
    find_asked,
    find_exception,
)
from wattline.plane.told import ExceptionHanded, ExceptionTold
from wattline.state import Answer, ExceptionAnswered, ExceptionAsked, PolicyException

_SOURCE = "api"  # on one machine it is the account that typed it
_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.1
Said = Annotated[str, Meta(min_length=1, max_length=500)]


class Petition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be allowed, to whom, until when and why."""

    rule: Text
    project: Text
    until: Text  # a time with its zone, or a duration from now
    because: Said
    amount: Text | None = None  # of a quota or budget: how much more in every week until then


class Answering(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    note: Annotated[str, Meta(max_length=500)] = ""


class Exceptions(TypedDict):
    exceptions: list[ExceptionTold]


async def _list(call: Call) -> Response:
    def question(view: View) -> Response:
        asked = exceptions_of(view.state, call.query.get("project"))
        found = [each for each in asked if call.caller.may_see(each.project)]
        now = time.time()
        if call.wants_text:
            return PlainTextResponse(call.served.words.exceptions(found, now))
        return answer({"exceptions": [describe_exception(each, now) for each in found]})

    return await call.ask(question)


async def _ask(call: Call) -> Response:
    petition = await call.body(Petition)
    assert petition is not None
    call.caller.check_project(petition.project)
    message = name_message("exception", scope_of(call))

    def question(view: View) -> ExceptionAsked:
        return asking(
            view.state,
            view.session.policy(),
            actor=call.caller.name,
            source=_SOURCE,
            key=message,
            project=petition.project,
            rule=petition.rule,
            amount=petition.amount,
            until=petition.until,
            because=petition.because,
        )

    event = await call.ask(question)
    audit = call.audit(petition.project, "accepted", f"{event.rule}: {event.because}")
    await wait_for(call.served.intake.put([(message, event)], audit))
    found = await _taken_in(call, lambda view: find_asked(view.state, event.key))
    if call.wants_text:
        told = call.served.words.exception_asked
        text = await call.ask(lambda view: told(view.session.policy(), petition.project, found))
        return PlainTextResponse(text, 202)
    return answer(describe_handed(found, event.at, journaled=found is not None), 202)


async def _answer(call: Call, *, approved: bool) -> Response:
    body = await call.body(Answering) or Answering()
    name, wanted = call.name("exception"), Answer.APPROVED if approved else Answer.DENIED

    def question(view: View) -> tuple[PolicyException, ExceptionAnswered | None]:
        known = find_exception(view.state, name)
        call.caller.check_project(known.project)
        if known.answer is wanted and known.answered_by == call.caller.name:
            return known, None  # a repeat, after an answer that was lost on its way
        event = answering(
            view.state,
            view.session.policy(),
            known,
            actor=call.caller.name,
            source=_SOURCE,
            approved=approved,
            note=body.note,
        )
        return known, event

    known, event = await call.ask(question)
    if event is not None:
        known = await _hand_over(call, known, event)
    is_in = known.answer is not Answer.NONE
    if call.wants_text:
        told = call.served.words.exception_answered(known, wanted, call.caller.name)
        return PlainTextResponse(told, 202)
    return answer(describe_handed(known, time.time(), journaled=is_in), 202)


async def _hand_over(call: Call, known: PolicyException, event: ExceptionAnswered) -> PolicyException:
    """The exception as it stands once the answer is taken in, or as it stood where that takes long."""
    message = name_message("answer", scope_of(call))
    audit = call.audit(known.id, "accepted", "approved" if event.approved else "denied")
    await wait_for(call.served.intake.put([(message, event)], audit))

    def answered(view: View) -> PolicyException | None:
        found = view.state.exceptions[known.id]
        return None if found.answer is Answer.NONE else found

    return await _taken_in(call, answered) or known


async def _taken_in(call: Call, look: Callable[[View], PolicyException | None]) -> PolicyException | None:
    """What became of it, if whoever conducts takes it in soon."""
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while (found := await call.ask(look)) is None and time.monotonic() < give_up_at:
        await asyncio.sleep(_LOOK_SECONDS)
    return found


async def _approve(call: Call) -> Response:
    return await _answer(call, approved=True)


async def _deny(call: Call) -> Response:
    return await _answer(call, approved=False)


def _answers(want: str, handle: Callable[[Call], Awaitable[Response]], say: str) -> Endpoint:
    return Endpoint(
        method="POST",
        path=f"/api/v1/exceptions/{{exception}}/{want}",
        name=f"{want}_exception",
        say=say,
        handle=handle,
        answer=ExceptionHanded,
        status=202,
        takes=Answering,
        takes_optional=True,
        headers=(KEY,),
        allowed=STEERS,
        refuses=(404, 408, 409, 413, 415, 422),
        changes=True,
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/exceptions",
        name="list_exceptions",
        say="What was asked for beyond the policy, the newest first, and who answered what.",
        handle=_list,
        answer=Exceptions,
        query=(Parameter(name="project", say="Only of this project."),),
        allowed=LOOKS,
        refuses=(422,),
    ),
    Endpoint(
        method="POST",
        path="/api/v1/exceptions",
        name="request_exception",
        say="Ask for more than a quota, or for a rule not to hold, for a project and a while.",
        handle=_ask,
        answer=ExceptionHanded,
        status=202,
        takes=Petition,
        headers=(KEY,),
        allowed=STEERS,
        refuses=(404, 408, 409, 413, 415, 422),
        changes=True,
    ),
    _answers(
        "approve", _approve, "Let it hold until its end; only for who has the role that the policy names."
    ),
    _answers("deny", _deny, "Say no; the same role as for approving."),
)
