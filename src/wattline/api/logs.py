"""What does a job print, from an offset on, and as it comes?"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta
from starlette.responses import Response

from wattline.api.call import Call, Count, Endpoint, Number, Parameter
from wattline.api.door import LOOKS
from wattline.api.looking import job_of
from wattline.api.problems import ProblemError
from wattline.live.printed import read_log
from wattline.plane.finding import View
from wattline.plane.logs import is_over, logs_of
from wattline.state import ENDED

_MOST_BYTES = 1 << 20
_LONGEST_WAIT_SECONDS = 20.0
_LOOK_SECONDS = 0.3


async def _log(call: Call) -> Response:
    offset, limit = call.query.get("offset", 0), call.query.get("limit", _MOST_BYTES)
    attempt = call.query.get("attempt")
    give_up_at = time.monotonic() + (_LONGEST_WAIT_SECONDS if call.query.get("follow") else 0.0)
    while True:
        number, path, over = await call.ask(lambda view: _found(call, view, attempt))
        data = b"" if path is None else await asyncio.to_thread(read_log, path, offset, limit)
        if data or over or time.monotonic() >= give_up_at or call.served.leaving.is_set():
            return _told(number, path, data, offset, over=over)
        await asyncio.sleep(_LOOK_SECONDS)


def _found(call: Call, view: View, attempt: int | None) -> tuple[int, Path | None, bool]:
    """Which attempt is meant, where its output lies, and whether no more comes of it."""
    _, job = job_of(call, view)
    number = attempt or job.attempt
    rests = job.state in ENDED or view.writer is None
    if number and number <= job.attempt:
        (log,) = logs_of(view, (job,), number)
        return number, log.path, rests or is_over(job, number)
    if rests or not call.query.get("follow"):
        logs_of(view, (job,), attempt)  # one that is named and not there is told with those that are
        hint = "`wattline explain` says why; --follow waits for it"
        raise ProblemError(404, f"{job.id} has not started yet, so it printed nothing", hint=hint)
    return number, None, False


def _told(number: int, path: Path | None, data: bytes, offset: int, *, over: bool) -> Response:
    headers = {
        "Wattline-Attempt": str(number),
        "Wattline-Next-Offset": str(offset + len(data)),
        "Wattline-Over": "true" if over and not data else "false",
        "Wattline-Path": "" if path is None else str(path),
    }
    return Response(data, media_type="text/plain", headers=headers)


_QUERY: tuple[tuple[str, Any, str], ...] = (
    ("attempt", Count, "Which attempt, from 1; the newest unless said."),
    ("offset", Number, "From this byte on."),
    ("limit", Annotated[int, Meta(ge=1, le=_MOST_BYTES)], "At most so many bytes."),
    ("follow", bool, f"Where nothing is there yet, wait up to {_LONGEST_WAIT_SECONDS:g} s for more."),
)
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/runs/{run}/jobs/{phase}/log",
        name="read_log",
        say="What an attempt printed. Headers say where to go on, and whether more may come.",
        handle=_log,
        media="text/plain",
        allowed=LOOKS,
        refuses=(404, 422),
        query=tuple(Parameter(name=name, kind=kind, say=say) for name, kind, say in _QUERY),
    ),
)
