"""Who is calling, may they, and how often?

A bearer token says who. It is looked up in the database and remembered for a second: a token that was revoked
is of no use a second later. While no token was ever made, whoever reaches the server is its operator; such a
server listens on loopback only.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

from starlette.requests import Request

from wattline.api.problems import ProblemError
from wattline.store import Store, open_store
from wattline.store.tokens import Role, TokenInfo

_REMEMBER_SECONDS = 1.0
_MOST_REMEMBERED = 10_000
_MOST_SECRET_CHARS = 200
LOOKS = frozenset({Role.READER, Role.SUBMITTER, Role.OPERATOR})
STEERS = frozenset({Role.SUBMITTER, Role.OPERATOR})
RUNS_IT = frozenset({Role.OPERATOR})
AGENTS = frozenset({Role.AGENT, Role.OPERATOR})
ANYBODY = frozenset(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who a call is by, as far as it matters."""

    name: str
    role: Role
    project: str | None = None  # the only one it is good for
    site: str | None = None

    def may_see(self, project: str) -> bool:
        return self.project is None or self.project == project

    def check_project(self, project: str) -> None:
        if not self.may_see(project):
            raise ProblemError(
                403,
                f"token {self.name} is good for the project {self.project}, not for {project}",
                hint="use a token of that project",
                exit_code=1,
            )


_OPEN = Caller(name="local", role=Role.OPERATOR)


class Door:
    """Checks tokens and counts calls."""

    def __init__(self, url_or_home: str, *, calls_per_second: float) -> None:
        self._store: Store = open_store(url_or_home)
        self._rate = calls_per_second
        self._known: OrderedDict[str, tuple[float, Caller | None]] = OrderedDict()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def has_tokens(self) -> bool:
        return bool(self._store.tokens.list())

    async def identify(self, request: Request) -> Caller:
        """Whose call this is; a 401 where nobody can tell."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        secret = secret.strip() if scheme.lower() == "bearer" else ""
        caller = await self._look_up(secret[:_MOST_SECRET_CHARS])
        if caller is None:
            address = request.client.host if request.client else "unknown"
            self.count(f"nobody at {address}", share=0.1)
            why = "it is not known, has expired or was revoked" if secret else "none was given"
            raise ProblemError(
                401,
                f"token: {why}",
                hint="set WATTLINE_TOKEN to one that `wattline token create` showed",
                headers={"WWW-Authenticate": "Bearer"},
            )
        self.count(caller.name)
        return caller

    def count(self, who: str, share: float = 1.0) -> None:
        """A call of somebody; a 429 where they make too many."""
        now, rate = time.monotonic(), self._rate * share
        left, at = self._buckets.pop(who, (2 * rate, now))
        left = min(2 * rate, left + (now - at) * rate)
        self._buckets[who] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > _MOST_REMEMBERED:
            self._buckets.popitem(last=False)
        if left < 1:
            raise ProblemError(
                429,
                f"{who}: more than {rate:g} calls a second",
                hint="wait a second, then make fewer",
                headers={"Retry-After": "1"},
            )

    def close(self) -> None:
        self._store.close()

    async def _look_up(self, secret: str) -> Caller | None:
        now = time.monotonic()
        at, caller = self._known.get(secret, (0.0, None))
        if now - at <= _REMEMBER_SECONDS and at:
            return caller
        caller = await asyncio.to_thread(self._check, secret)
        self._known[secret] = (now, caller)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return caller

    def _check(self, secret: str) -> Caller | None:
        found = self._store.tokens.check(secret, time.time()) if secret else None
        if found is None:
            return None if secret or self.has_tokens() else _OPEN
        return _caller_of(found)


def check_role(caller: Caller, allowed: frozenset[Role]) -> None:
    if caller.role not in allowed:
        roles = ", ".join(sorted(allowed))
        raise ProblemError(
            403,
            f"token {caller.name} has the role {caller.role}; this needs one of: {roles}",
            hint="use a token with such a role",
            exit_code=1,
        )


def _caller_of(token: TokenInfo) -> Caller:
    return Caller(name=token.name, role=token.role, project=token.project, site=token.site)
