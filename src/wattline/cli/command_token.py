"""The token commands: who may call a server; made, listed and taken back where its database is."""

from __future__ import annotations

import sys
import time

from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.cli.remote import say_here
from wattline.errors import UsageError
from wattline.live import Home
from wattline.plane.finding import unknown
from wattline.plane.moments import iso
from wattline.plane.session import open_session, user
from wattline.store.tokens import Role, TokenInfo
from wattline.units import DURATION, QuantityError


def create_token(
    name: str, *, role: str, project: str | None, site: str | None, expires: str, as_json: bool
) -> int:
    """Print the secret, once; nobody can ask for it again."""
    try:
        ttl_seconds = DURATION.parse(expires)
    except QuantityError as error:
        raise UsageError(f"--expires {expires[:50]!r}: {error}", hint="such as 30d") from error
    say_here()
    session, now = open_session(Home.find()), time.time()
    try:
        if site is not None and session.state is not None and site not in session.state.plant.sites:
            raise unknown("site", site, session.state.plant.sites)
        secret = session.store.tokens.create(
            name, role=Role(role), project=project, site=site, ttl_seconds=ttl_seconds, now=now
        )
        detail = f"{role}, expires {iso(now + ttl_seconds)}"
        session.store.audit.append(now, user(), project or "", "create_token", name, "accepted", detail)
        has_operator = any(
            token.role is Role.OPERATOR and token.is_good_at(now) for token in session.store.tokens.list()
        )
    finally:
        session.close()
    if as_json:
        print_json({"name": name, "token": secret, "role": role, "expires_at": iso(now + ttl_seconds)})
        return 0
    sys.stdout.write(f"{secret}\n")
    sys.stderr.write(f"shown once; it expires {iso(now + ttl_seconds)}. Set WATTLINE_TOKEN to it.\n")
    if not has_operator:
        sys.stderr.write(
            "the server asks everybody for a token now, and no operator has one: "
            "`wattline token create NAME --role operator` makes it\n"
        )
    return 0


def list_tokens(*, as_json: bool) -> int:
    say_here()
    session, now = open_session(Home.find()), time.time()
    try:
        found = session.store.tokens.list()
    finally:
        session.close()
    if as_json:
        print_json({"tokens": [_describe(token, now) for token in found]})
        return 0
    console = stdout_console()
    if not found:
        console.print("no token was made yet: a server listens on loopback only, and asks for none")
        return 0
    table = columns("name", "role", "for", "expires", "state")
    for token in found:
        table.add_row(
            plain(token.name),
            token.role,
            plain(token.project or token.site or "all projects"),
            iso(token.expires_at) or "",
            _state(token, now),
        )
    console.print(table)
    return 0


def revoke_token(name: str, *, as_json: bool) -> int:
    say_here()
    session, now = open_session(Home.find()), time.time()
    try:
        was_good = session.store.tokens.revoke(name, now)
        session.store.audit.append(now, user(), "", "revoke_token", name, "accepted")
    finally:
        session.close()
    if as_json:
        print_json({"name": name, "revoked": was_good})
    else:
        told = f"{name} is of no use any more" if was_good else f"{name} was revoked before"
        stdout_console().print(plain(told))
    return 0


def _state(token: TokenInfo, now: float) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "good" if token.is_good_at(now) else "expired"


def _describe(token: TokenInfo, now: float) -> dict[str, object]:
    return {
        "name": token.name,
        "role": token.role,
        "project": token.project,
        "site": token.site,
        "created_at": iso(token.created_at),
        "expires_at": iso(token.expires_at),
        "revoked_at": iso(token.revoked_at),
        "state": _state(token, now),
    }
