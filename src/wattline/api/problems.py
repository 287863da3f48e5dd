"""How is anything that goes wrong told to a program? As problem details (RFC 9457), every time."""

from __future__ import annotations

import http

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from wattline.errors import DocumentError, RefusedError, UnavailableError, UsageError, WattlineError
from wattline.plane.finding import UnknownError
from wattline.store.tokens import hide_secrets

MEDIA_TYPE = "application/problem+json"
_MOST_DETAIL = 2000
_STATUS_OF: tuple[tuple[type[WattlineError], int], ...] = (
    (UnknownError, 404),
    (DocumentError, 422),
    (UsageError, 422),
    (RefusedError, 409),
    (UnavailableError, 503),
)


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong: the subject, the rule and the value in `detail`; what to do in `hint`."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    hint: str | None = None
    exit_code: int = 3  # of the command line, where it meets this
    missing: tuple[str, ...] = ()  # objects to put first


class ProblemError(Exception):
    """Ends a call with a problem."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        hint: str | None = None,
        exit_code: int = 3,
        headers: dict[str, str] | None = None,
        missing: tuple[str, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers or {}
        self.problem = Problem(
            title=http.HTTPStatus(status).phrase,
            status=status,
            detail=hide_secrets(detail)[:_MOST_DETAIL],
            hint=hint,
            exit_code=exit_code,
            missing=missing,
        )


def problem_of(error: WattlineError) -> ProblemError:
    """An error of ours by who can mend it."""
    status = next((status for kind, status in _STATUS_OF if isinstance(error, kind)), 500)
    return ProblemError(status, error.message, hint=error.hint, exit_code=error.exit_code)


def answer_problem(error: ProblemError) -> Response:
    return Response(
        msgspec.json.encode(error.problem),
        status_code=error.status,
        media_type=MEDIA_TYPE,
        headers=error.headers,
    )


async def on_http_exception(request: Request, error: Exception) -> Response:
    """What the router says: no such path, or no such method on it."""
    assert isinstance(error, HTTPException)
    details = {
        404: f"there is nothing at {request.url.path[:200]}",
        405: f"{request.method} is not allowed here",
    }
    hint = "GET /api/v1/openapi.json lists what there is"
    told = ProblemError(
        error.status_code,
        details.get(error.status_code, str(error.detail)),
        hint=hint,
        exit_code=2,
        headers=dict(error.headers or {}),
    )
    return answer_problem(told)


async def on_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return answer_problem(error)


async def on_our_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, WattlineError)
    return answer_problem(problem_of(error))


async def on_anything(_request: Request, error: Exception) -> Response:
    """Nobody sees a traceback; the server's own log has it."""
    told = ProblemError(
        500, f"this is a fault of the server: {type(error).__name__}", hint="its log says more"
    )
    return answer_problem(told)
