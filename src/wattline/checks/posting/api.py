"""API: how is a JSON API asked, when it may be busy, and with a token that nobody may see?

A redirect is refused: it would carry the token to somebody else.
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from wattline.errors import UnavailableError, UsageError

_TIMEOUT_SECONDS = 30.0
_TRIES = 4
_LONGEST_PAUSE_SECONDS = 60.0
_LARGEST_ANSWER_BYTES = 16 << 20
_BUSY = frozenset({429, 500, 502, 503, 504})
_TOKEN = re.compile(r"[!-~]{1,4096}", re.ASCII)
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class RejectedError(UnavailableError):
    """The API said no; `status` says how."""

    def __init__(self, message: str, status: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def said(self) -> str:
        """Why not, in the API's own words."""
        try:
            answer = json.loads(self.body)
        except (ValueError, RecursionError):
            return ""
        return (
            str(answer.get("message") or answer.get("error") or "")[:300] if isinstance(answer, dict) else ""
        )


class Api:
    """One server, asked with one token."""

    def __init__(self, url: str, headers: Mapping[str, str], *, pause_seconds: float = 1.0) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
            raise UsageError(f"{url[:200]}: an API is asked over https, for the token's sake")
        self._url, self._headers = url.rstrip("/"), dict(headers)
        self._pause_seconds = pause_seconds
        self._opener = urllib.request.build_opener(_NoRedirect)

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """The answer, or RejectedError. While the server is busy, what may be done twice is asked again."""
        pause_seconds = self._pause_seconds
        for left in reversed(range(_TRIES)):
            answer = self._exchange(method, path, body)
            if answer.status < 300:
                return _parse(answer, path)
            # A POST that failed in the server may have been done; one above a limit was not.
            once = method == "POST" and answer.status >= 500
            if not left or once or not is_busy(answer.status, answer.headers, answer.said):
                break
            time.sleep(min(_LONGEST_PAUSE_SECONDS, max(pause_seconds, _asked_to_wait(answer.headers))))
            pause_seconds *= 2
        said = f": {answer.said}" if answer.said else ""
        raise RejectedError(
            f"{method} {self._url}{path.partition('?')[0]} was answered with {answer.status}{said}",
            answer.status,
            hint="the repository has moved: give its present name" if 300 <= answer.status < 400 else None,
        )

    def pages(self, path: str, *, most: int) -> Iterator[dict[str, Any]]:
        """Every item of a list, a hundred at a time."""
        joint = "&" if "?" in path else "?"
        for page in range(1, most + 1):
            items = self.ask("GET", f"{path}{joint}per_page=100&page={page}")
            if not isinstance(items, list):
                raise UnavailableError(f"{self._url}{path}: the answer is no list")
            yield from (item for item in items if isinstance(item, dict))
            if len(items) < 100:
                return

    def _exchange(self, method: str, path: str, body: Mapping[str, object] | None) -> _Answer:
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "User-Agent": "wattline"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self._url + path, data=data, headers=headers, method=method)  # noqa: S310 - https
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as response:
                return _Answer(
                    response.status, _lower(response.headers), response.read(_LARGEST_ANSWER_BYTES + 1)
                )
        except urllib.error.HTTPError as error:
            with error:
                return _Answer(error.code, _lower(error.headers), error.read(_LARGEST_ANSWER_BYTES))
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", None) or error
            return _Answer(503, {}, json.dumps({"message": f"no answer: {why}"}).encode())


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def is_busy(status: int, headers: Mapping[str, str], said: str) -> bool:
    """A limit on how often one may ask comes as 403 too."""
    limited = "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0" or "rate limit" in said
    return status in _BUSY or (status == 403 and limited)


def check_token(variable: str, token: str | None) -> str:
    """A token that can stand in a header; its value is in no message."""
    if not token:
        raise UsageError(
            f"{variable} is not set", hint=f"put a token that may write comments into {variable}"
        )
    if _TOKEN.fullmatch(token) is None:
        raise UsageError(
            f"{variable} holds something that no token has: spaces, line ends or other characters"
        )
    return token


def _asked_to_wait(headers: Mapping[str, str]) -> float:
    seconds = headers.get("retry-after", "")
    return float(seconds) if seconds.isascii() and seconds.isdigit() else 0.0


def _parse(answer: _Answer, path: str) -> Any:
    if len(answer.body) > _LARGEST_ANSWER_BYTES:
        raise UnavailableError(f"{path}: the answer is larger than {_LARGEST_ANSWER_BYTES >> 20} MiB")
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        raise UnavailableError(f"{path}: the answer is not JSON") from None
