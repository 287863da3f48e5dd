"""Which endpoints are there, and what is done around every call: who is it, may they, and what came of it?"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from wattline.api import documents, exceptions, logs, looking, objects, submitting
from wattline.api.call import Call, Endpoint, Served, answer, wait_for
from wattline.api.door import Caller, check_role
from wattline.api.events import Listeners, events_endpoint
from wattline.api.health import OPEN, metrics_endpoint
from wattline.api.metrics import Calls
from wattline.api.openapi import describe_api
from wattline.api.problems import (
    ProblemError,
    answer_problem,
    on_anything,
    on_http_exception,
    on_our_error,
    on_problem,
    problem_of,
)
from wattline.api.sites import Sync, site_endpoints
from wattline.errors import WattlineError
from wattline.store.tokens import Role

_NOBODY = Caller(name="nobody", role=Role.READER, project="")
_MOST_QUERY_CHARS = 4096


def make_app(served: Served, *, sync: Sync | None = None) -> Starlette:
    """The whole API. `sync` is what another room brings: see `api/sites.py`."""
    calls = Calls()
    endpoints = (
        *OPEN,
        metrics_endpoint(calls),
        *looking.ENDPOINTS,
        *logs.ENDPOINTS,
        *submitting.ENDPOINTS,
        *objects.ENDPOINTS,
        *exceptions.ENDPOINTS,
        *site_endpoints(sync),
        *documents.ENDPOINTS,
        events_endpoint(Listeners(served.limits.listeners)),
    )
    described = describe_api(endpoints)

    async def _openapi(_call: Call) -> Response:
        return answer(described)

    own = Endpoint(
        method="GET",
        path="/api/v1/openapi.json",
        name="openapi",
        say="This description.",
        handle=_openapi,
        answer=dict[str, Any],
        allowed=None,
    )
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in (*endpoints, own):
        by_path.setdefault(endpoint.path, []).append(endpoint)
    routes = []
    for path, each in by_path.items():
        by_method = {one.method: one for one in each}
        routes.append(Route(path, _serve(served, calls, by_method), methods=list(by_method)))
    handlers: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
        HTTPException: on_http_exception,
        ProblemError: on_problem,
        WattlineError: on_our_error,
        Exception: on_anything,
    }
    return Starlette(routes=routes, exception_handlers=handlers)


def _serve(
    served: Served, calls: Calls, endpoints: dict[str, Endpoint]
) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        endpoint = endpoints.get(request.method) or endpoints["GET"]  # a router lets HEAD through to GET
        began = time.monotonic()
        call = Call(served, endpoint, request, _NOBODY)
        try:
            response = await _answer(call)
        except ProblemError as error:
            response = await _refuse(call, error)
        except WattlineError as error:
            response = await _refuse(call, problem_of(error))
        calls.note(endpoint.name, response.status_code, time.monotonic() - began)
        return response

    return handle


async def _answer(call: Call) -> Response:
    endpoint = call.endpoint
    if endpoint.allowed is not None:
        call.caller = await call.served.door.identify(call.request)
        check_role(call.caller, endpoint.allowed)
    else:
        call.served.door.count("open endpoints")
    call.query = _read_query(call)
    return await endpoint.handle(call)


async def _refuse(call: Call, error: ProblemError) -> Response:
    """Say no; and write down that somebody tried, where something would have changed."""
    if call.endpoint.changes and error.status != 429:
        subject = call.request.url.path.removeprefix("/api/v1/")
        entry = call.audit(subject, f"denied {error.status}", error.problem.detail)
        try:
            await wait_for(call.served.intake.put([], entry))
        except WattlineError as trouble:
            error = problem_of(trouble)
    return answer_problem(error)


def _read_query(call: Call) -> dict[str, Any]:
    """What the query says, each of its type; what is not known is refused by name."""
    if len(call.request.url.query) > _MOST_QUERY_CHARS:
        raise ProblemError(422, f"query: at most {_MOST_QUERY_CHARS} characters", exit_code=2)
    known = {parameter.name: parameter.kind for parameter in call.endpoint.query}
    found: dict[str, Any] = {}
    for name, text in call.request.query_params.multi_items():
        if name not in known or name in found:
            why = "is given twice" if name in found else f"is none of: {', '.join(known)}"
            raise ProblemError(422, f"query: {name[:50]!r} {why}", exit_code=2)
        try:
            found[name] = msgspec.convert(text, known[name], strict=False)
        except msgspec.ValidationError as error:
            raise ProblemError(422, f"{name}: {error}, got {text[:50]!r}", exit_code=2) from None
    return found
