"""What happens, as it happens: the journal as server-sent events.

The id of an event is the number of its record, so that a client that comes back with Last-Event-ID misses
nothing. A token of one project hears of that project and of the facility, not of others' jobs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import partial
from itertools import islice

import msgspec
from starlette.responses import Response, StreamingResponse

from wattline.api.call import Call, Endpoint, Number, Parameter, wait_for
from wattline.api.door import LOOKS
from wattline.api.problems import ProblemError
from wattline.control import StepRecord
from wattline.plane.finding import View
from wattline.plane.session import Session
from wattline.state import (
    Acknowledged,
    Action,
    ActionFailed,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Event,
    Forecasted,
    Measured,
    Noticed,
    Progressed,
    State,
)
from wattline.store.steps import read_steps

_QUIET_SECONDS = 15.0  # then a comment is sent, so that whoever is between keeps the connection open
_MOST_AT_ONCE = 500
_OF_A_JOB = (Noticed, AttemptStarted, Progressed, CheckpointSaved, AttemptEnded)
_encode = msgspec.json.Encoder().encode


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded turn: what came in, and what was decided."""

    seq: int
    at: float
    events: tuple[Event, ...]
    actions: tuple[Action, ...]


class Listeners:
    """How many follow now; each costs a connection."""

    def __init__(self, most: int) -> None:
        self._most, self.count = most, 0

    def enter(self) -> None:
        if self.count >= self._most:
            raise ProblemError(
                503, f"{self._most} clients follow events already", hint="try again later", headers=_LATER
            )
        self.count += 1

    def leave(self) -> None:
        self.count -= 1


_LATER = {"Retry-After": "10"}


def events_endpoint(listeners: Listeners) -> Endpoint:
    async def handle(call: Call) -> Response:
        seq = _start(call)
        listeners.enter()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        stream = _stream(call, seq, listeners)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    return Endpoint(
        method="GET",
        path="/api/v1/events",
        name="follow_events",
        say="Every recorded turn as a server-sent event; `Last-Event-ID` says where to go on.",
        handle=handle,
        media="text/event-stream",
        allowed=LOOKS,
        refuses=(422,),
        query=(
            Parameter(name="after", kind=Number, say="Begin after this record; with the next unless said."),
            Parameter(name="readings", kind=bool, say="Also what meters read."),
            Parameter(name="until", kind=Number, say="End after this record; never unless said."),
        ),
        headers=(Parameter(name="Last-Event-ID", kind=Number, say="The last record that was heard of."),),
    )


def _start(call: Call) -> int:
    last = call.request.headers.get("last-event-id")
    if last is not None:
        if not last.isdecimal() or len(last) > 18:
            raise ProblemError(422, f"Last-Event-ID: a record's number, got {last[:40]!r}", exit_code=2)
        return int(last)
    after: int = call.query.get("after", call.served.reader.last_seq)
    return after


async def _stream(call: Call, seq: int, listeners: Listeners) -> AsyncIterator[bytes]:
    """From a record on, until the client leaves."""
    loop, news, until = asyncio.get_running_loop(), asyncio.Event(), call.query.get("until")

    def wake(_seq: int) -> None:
        loop.call_soon_threadsafe(news.set)

    stop = call.served.reader.when_recorded(wake)
    try:
        yield b": listening\n\n"
        while (until is None or seq < until) and not call.served.leaving.is_set():
            news.clear()
            heard = await wait_for(call.served.reader.look(partial(_hear, call, seq)))
            for number, told in heard:
                seq = number
                if until is not None and seq > until:
                    return
                if told is not None:
                    yield b"id: %d\nevent: step\ndata: %b\n\n" % (number, _encode(told))
            if heard:
                continue
            if until is not None and seq <= call.served.reader.last_seq <= until:
                return
            if not await _wait(news, call.served.leaving):
                yield b": still here\n\n"
    finally:
        stop()
        listeners.leave()


async def _wait(news: asyncio.Event, leaving: threading.Event) -> bool:
    """Until there is news or the server leaves; False: it was quiet for long."""
    for _ in range(round(_QUIET_SECONDS)):
        try:
            async with asyncio.timeout(1.0):
                await news.wait()
        except TimeoutError:
            if not leaving.is_set():
                continue
        return True
    return False


def _hear(call: Call, after_seq: int, _session: Session, view: View | None) -> list[tuple[int, Step | None]]:
    """The next turns with what of each is the caller's business; None: nothing."""
    if view is None:
        return []
    steps = islice(read_steps(view.session.store.journal, after_seq), _MOST_AT_ONCE)
    return [(seq, _seen(call, view.state, seq, record)) for seq, record in steps]


def _seen(call: Call, state: State, seq: int, record: StepRecord) -> Step | None:
    project = call.caller.project
    hidden = () if call.query.get("readings") else (Measured,)
    events = tuple(
        event
        for event in record.events
        if not isinstance(event, hidden) and (project is None or _is_of(event, state, project))
    )
    actions = tuple(
        action
        for action in record.decision.actions
        if project is None or _project_of_job(state, action.job) == project
    )
    if not events and not actions:
        return None
    return Step(seq=seq, at=record.decision.at, events=events, actions=actions)


def _is_of(event: Event, state: State, project: str) -> bool:
    """Whether an event is of a project, or of the facility and so of all."""
    if isinstance(event, Forecasted):
        return False  # it speaks of everybody's jobs
    if event.project:
        return event.project == project
    job = event.job if isinstance(event, _OF_A_JOB) else ""
    if isinstance(event, Acknowledged | ActionFailed):
        job = event.action.partition("#")[0]
    return not job or _project_of_job(state, job) == project


def _project_of_job(state: State, job: str) -> str | None:
    known = state.jobs.get(job)
    return None if known is None else known.request.project
