"""How does the API hand an agent's request to the loop, and its answer back?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wattline.api.door import Caller
from wattline.api.sites import Sync
from wattline.control.sites import SyncReply, SyncRequest
from wattline.control.sites.messages import MOST_EVENTS
from wattline.errors import UnavailableError, UsageError
from wattline.live.fleet import FleetWorld

_ANSWER_SECONDS = 10.0


def agents_sync(fleet_of: Callable[[], FleetWorld | None]) -> Sync:
    """`fleet_of` gives the fleet while this server conducts."""

    async def handle(_caller: Caller, site: str, request: SyncRequest) -> SyncReply:
        if request.site != site:
            raise UsageError(f"sync: the request is of site {request.site!r}, its address of {site!r}")
        if len(request.events) > MOST_EVENTS:
            raise UsageError(f"sync: at most {MOST_EVENTS} events at once, got {len(request.events)}")
        fleet = fleet_of()
        if fleet is None:
            raise UnavailableError("this server stands by: another conducts", hint="ask that one")
        try:
            return await asyncio.wait_for(asyncio.wrap_future(fleet.submit(request)), _ANSWER_SECONDS)
        except TimeoutError:
            raise UnavailableError(
                f"site {site}: no answer within {_ANSWER_SECONDS:.0f} s", hint="ask again later"
            ) from None

    return Sync(takes=SyncRequest, answer=SyncReply, handle=handle)
