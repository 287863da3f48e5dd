"""What is an endpoint, and what does it have at hand while it answers?

An endpoint says all about itself: who may call it, what it takes, what it answers and how it refuses.
Routing, checks and the published description (OpenAPI) are made of this one table row.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from wattline.api.door import ANYBODY, Caller, Door
from wattline.api.problems import ProblemError
from wattline.api.words import Words
from wattline.decoding import decode_json
from wattline.live import Home
from wattline.plane.finding import View
from wattline.plane.intake import Intake
from wattline.plane.reader import Reader
from wattline.plane.steering import HandsOver
from wattline.plane.submitting import Receiving
from wattline.spec.quantities import check_name
from wattline.store import ObjectStore
from wattline.store.audit import AuditEntry
from wattline.store.tokens import Role

T = TypeVar("T")

Count = Annotated[int, Meta(ge=1, le=1000)]
Number = Annotated[int, Meta(ge=0, le=2**53)]
Text = Annotated[str, Meta(min_length=1, max_length=200)]

MOST_BODY_BYTES = 1 << 20
MOST_OBJECT_BYTES = 4 << 30
_PIECE_SECONDS = 30.0  # how long a piece of a body may take to come


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one call may bring."""

    body_bytes: int = MOST_BODY_BYTES
    object_bytes: int = MOST_OBJECT_BYTES
    listeners: int = 100  # who may follow events or logs at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What all endpoints of a server share."""

    home: Home
    objects: ObjectStore
    reader: Reader
    intake: Intake
    receiving: Receiving
    door: Door
    words: Words
    is_conducting: Callable[[], bool]
    hands_over: HandsOver = lambda *_: True
    limits: Limits = Limits()
    leaving: threading.Event = field(default_factory=threading.Event)  # who follows is let go


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Something in the query of a call."""

    name: str
    kind: Any = Text
    say: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    method: str
    path: str
    name: str
    say: str
    handle: Callable[[Call], Awaitable[Response]]
    answer: Any = None  # the type of its JSON; None: it answers with something else, see `media`
    status: int = 200
    media: str = "application/json"
    takes: Any = None  # the type of its JSON body
    takes_optional: bool = False
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    allowed: frozenset[Role] | None = ANYBODY  # None: no token is asked for
    refuses: tuple[int, ...] = ()  # how, besides what any endpoint may
    also: tuple[int, ...] = ()  # other good answers, without a body
    changes: bool = False  # every call is audited


@dataclass(slots=True)
class Call:
    """One call: who makes it, of what, and with what at hand."""

    served: Served
    endpoint: Endpoint
    request: Request
    caller: Caller
    query: dict[str, Any] = field(default_factory=dict)

    def name(self, part: str) -> str:
        """A part of the path that names something; one that could be no name is not there."""
        value = str(self.request.path_params[part])
        try:
            return check_name(value)
        except ValueError as error:
            raise ProblemError(404, f"{part} {value[:100]!r}: {error}", exit_code=2) from None

    async def ask(self, question: Callable[[View], T]) -> T:
        """Answered from the journal, once others before it are."""
        return await wait_for(self.served.reader.ask(question))

    async def body(self, kind: type[T]) -> T | None:
        """The body as a value of a type; None where it may be left out and was."""
        data = b"".join([piece async for piece in self.pieces(self.served.limits.body_bytes)])
        if not data and self.endpoint.takes_optional:
            return None
        media = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":
            raise ProblemError(415, f"content-type: JSON is taken here, got {media[:50]!r}", exit_code=2)
        try:
            return decode_json(data, kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ProblemError(422, f"body: {error}", exit_code=2) from None

    async def pieces(self, most_bytes: int) -> AsyncIterator[bytes]:
        """The body as it comes; refused unread where it says that it is too large."""
        said = self.request.headers.get("content-length", "")
        if said.isdigit() and int(said) > most_bytes:
            raise _too_large(int(said), most_bytes)
        total, stream = 0, self.request.stream()
        while True:
            try:
                async with asyncio.timeout(_PIECE_SECONDS):
                    piece = await anext(stream)
            except StopAsyncIteration:
                return
            except (TimeoutError, ClientDisconnect):
                raise ProblemError(
                    408, f"body: nothing came for {_PIECE_SECONDS:g} s", headers={"Connection": "close"}
                ) from None
            total += len(piece)
            if total > most_bytes:
                raise _too_large(total, most_bytes)
            yield piece

    def audit(self, subject: str, outcome: str, detail: str = "") -> AuditEntry:
        return AuditEntry(
            at=time.time(),
            actor=self.caller.name,
            project=self.caller.project or "",
            action=self.endpoint.name,
            subject=subject,
            outcome=outcome,
            detail=detail,
        )

    @property
    def wants_text(self) -> bool:
        """For people: the words that the command line prints."""
        return self.request.headers.get("accept", "").partition(",")[0].strip().startswith("text/plain")


def answer(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON as `--output json` has it; what is not a finite number is null."""
    return Response(
        msgspec.json.encode(value), status_code=status, media_type="application/json", headers=headers
    )


async def wait_for(future: Future[T]) -> T:
    return await asyncio.wrap_future(future)


def _too_large(got_bytes: int, most_bytes: int) -> ProblemError:
    return ProblemError(
        413,
        f"body: at most {most_bytes} bytes are taken here, got {got_bytes} or more",
        hint="large content goes among the objects: PUT /api/v1/objects/{sha256}",
        exit_code=2,
        headers={"Connection": "close"},
    )
