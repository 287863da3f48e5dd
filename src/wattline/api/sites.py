"""What are the sites, how do they stand, and how does an agent of one speak with its control plane?

`sync` is handed in by whoever builds the app: the control plane's side of an agent's conversation. Without it
there is no such endpoint.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import msgspec
from starlette.responses import PlainTextResponse, Response

from wattline.api.call import Call, Endpoint, Number, Parameter, answer, wait_for
from wattline.api.door import AGENTS, LOOKS, RUNS_IT, Caller
from wattline.api.looking import job_of
from wattline.api.problems import ProblemError
from wattline.engines.files import OUTPUT
from wattline.live.printed import MOST_PIECE_BYTES, write_log
from wattline.plane.conditions import describe_conditions, find_conditions
from wattline.plane.finding import View
from wattline.plane.site_words import SITE_WANTS, ask_of_site, describe_word, site_asked
from wattline.plane.submitting import new_key
from wattline.plane.told import SiteTold, SiteWord
from wattline.state import Standing


class SiteListed(TypedDict):
    site: str
    region: str
    gpus: int
    nodes: int
    telemetry: str
    is_cloud: bool
    standing: Standing | None  # of its agent to this control plane; None: it has none


class Sites(TypedDict):
    facility: str
    sites: list[SiteListed]


class LogKept(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an attempt's output is here: where its agent goes on."""

    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """The control plane's side of an agent's conversation: a message of a type in, one of a type out."""

    takes: Any
    answer: Any
    handle: Callable[[Caller, str, Any], Awaitable[msgspec.Struct]]


def site_endpoints(sync: Sync | None) -> tuple[Endpoint, ...]:
    found = (_LIST, _CONDITIONS, _LOG, *(_word(want) for want in SITE_WANTS))
    return found if sync is None else (*found, _sync(sync))


def _word(want: str) -> Endpoint:
    """The endpoint that takes a person's word about a site."""

    async def handle(call: Call) -> Response:
        site = call.name("site")
        record = await call.ask(lambda view: ask_of_site(view.state, site, want))
        word = site_asked(site, want, at=time.time(), actor=call.caller.name)
        entry = call.audit(site, "accepted", f"stood as {record.standing}")
        await wait_for(call.served.intake.put([(f"{want}-{new_key()}", word)], entry))
        return answer(describe_word(record, want), 202)

    return Endpoint(
        method="POST",
        path=f"/api/v1/sites/{{site}}/{want.replace('_', '-')}",
        name=f"{want}_site",
        say={
            "give_up": "Nothing runs at a site any more: what it held may go on elsewhere.",
            "reviewed": "A site that was held for review takes work again.",
        }[want],
        handle=handle,
        answer=SiteWord,
        status=202,
        allowed=RUNS_IT,
        refuses=(404, 409),
        changes=True,
    )


async def _list(call: Call) -> Response:
    def question(view: View) -> Response:
        facility = view.state.plant.facility
        told: Sites = {
            "facility": facility.name,
            "sites": [
                {
                    "site": site.name,
                    "region": site.region,
                    "gpus": sum(node.gpus for rack in site.racks for node in rack.nodes),
                    "nodes": sum(len(rack.nodes) for rack in site.racks),
                    "telemetry": site.telemetry,
                    "is_cloud": site.name in view.state.plant.clouds,
                    "standing": _standing(view, site.name),
                }
                for site in facility.sites
            ],
        }
        return answer(told)

    return await call.ask(question)


def _standing(view: View, site: str) -> Standing | None:
    record = view.state.sites.get(site)
    return None if record is None else record.standing


async def _conditions(call: Call) -> Response:
    def question(view: View) -> Response:
        found = find_conditions(view, call.name("site"))
        if call.wants_text:
            return PlainTextResponse(call.served.words.site(found))
        return answer(describe_conditions(found))

    return await call.ask(question)


def _spoken_for(call: Call) -> str:
    """The site that the path names, if the caller speaks for it."""
    site = call.name("site")
    if call.caller.site not in (None, site):
        raise ProblemError(
            403,
            f"token {call.caller.name} speaks for {call.caller.site}, not for {site}",
            hint="use the token of that site's agent",
            exit_code=1,
        )
    return site


async def _keep_log(call: Call) -> Response:
    site = _spoken_for(call)
    path = await call.ask(lambda view: _log_of(call, view, site))
    piece = b"".join([piece async for piece in call.pieces(MOST_PIECE_BYTES)])
    size_bytes = await asyncio.to_thread(write_log, path, call.query.get("offset", 0), piece)
    return answer(LogKept(size_bytes=size_bytes))


def _log_of(call: Call, view: View, site: str) -> Path:
    """Where the output of an attempt is kept, if that ran, or runs, at this site."""
    _, job = job_of(call, view)
    text = call.name("attempt")
    number = int(text) if text.isascii() and text.isdigit() else 0
    places = {past.attempt: past.place for past in job.past}
    if number == job.attempt and job.place is not None:
        places[number] = job.place
    place = places.get(number)
    if place is None:
        raise ProblemError(404, f"{job.id} has no attempt {text[:20]!r} that ran", exit_code=2)
    if place.site != site:
        raise ProblemError(409, f"{job.id}/{number} is at {place.site}, not at {site}", exit_code=1)
    return view.session.home.attempt(job.request.run, job.request.phase, number) / OUTPUT


def _sync(sync: Sync) -> Endpoint:
    async def handle(call: Call) -> Response:
        site = _spoken_for(call)
        message = await call.body(sync.takes)
        return answer(await sync.handle(call.caller, site, message))

    return Endpoint(
        method="POST",
        path="/api/v1/sites/{site}/sync",
        name="sync_site",
        say="What an agent has to tell, and what is wanted of its site.",
        handle=handle,
        answer=sync.answer,
        takes=sync.takes,
        allowed=AGENTS,
        refuses=(404, 408, 409, 413, 415, 422),
        changes=True,
    )


_LIST = Endpoint(
    method="GET", path="/api/v1/sites", name="list_sites", say="The sites of the facility in force.",
    handle=_list, answer=Sites, allowed=LOOKS | AGENTS,
)  # fmt: skip
_CONDITIONS = Endpoint(
    method="GET", path="/api/v1/sites/{site}/conditions", name="site_conditions",
    say="Headroom per feed, loop, rack and link, and what follows from it.", handle=_conditions,
    answer=SiteTold, allowed=LOOKS | AGENTS, refuses=(404,),
)  # fmt: skip
_LOG = Endpoint(
    method="PUT", path="/api/v1/sites/{site}/runs/{run}/jobs/{phase}/attempts/{attempt}/log", name="keep_log",
    say="A piece of what an attempt at a site printed, from its agent; how much of it is here then.",
    handle=_keep_log, answer=LogKept, takes=bytes, allowed=AGENTS, refuses=(404, 408, 409, 413, 422),
    query=(Parameter(name="offset", kind=Number, say="From this byte on; 0 unless said."),), changes=True,
)  # fmt: skip
