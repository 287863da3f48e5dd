"""Who may ask what of a server, and how does it know them?

A token is a secret that is shown once, to whoever makes it. The store keeps its SHA-256 and nothing else of
it. One plain hash is right here and would be wrong for passwords: the secret is 256 random bits, so there is
nothing to guess and nothing that a slow hash or a salt could add, while every call to a server pays for it.
Finding a row by the hash tells nothing by how long it takes, because nobody can choose a hash.

A token is bound to one project, or to none where its role is reader or operator, or to the site of an agent.
It always expires. A name is given once and never again, so that the audit says who it was.
"""

from __future__ import annotations

import math
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from sqlalchemy import Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from wattline.errors import UsageError
from wattline.store.database import Database
from wattline.store.errors import StoreRefusedError
from wattline.store.records import check_name
from wattline.store.schema import tokens

MAX_TTL_SECONDS = 366 * 86400.0

_PREFIX = "wl_"
_SECRET_BYTES = 32
_SECRET = re.compile(r"wl_[A-Za-z0-9_-]{20,}")
_COLUMNS = [column for column in tokens.c if column is not tokens.c.hash]
_MOST_LISTED = 10_000


class Role(StrEnum):
    """What the bearer of a token may do: look, submit and steer, everything, or speak for one site."""

    READER = "reader"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInfo:
    """All that is known of a token: nothing here can be used to pass for its bearer."""

    name: str
    role: Role
    project: str | None
    """The only project it is good for; None stands for all."""
    site: str | None
    """The only site it may speak for; only agents have one."""
    created_at: float
    expires_at: float
    revoked_at: float | None

    def is_good_at(self, now: float) -> bool:
        return self.revoked_at is None and now < self.expires_at

    def may_see(self, project: str) -> bool:
        """Whether what belongs to a project is any business of the bearer."""
        return self.project is None or self.project == project


class Tokens:
    """The tokens of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        name: str,
        *,
        role: Role,
        project: str | None = None,
        site: str | None = None,
        ttl_seconds: float,
        now: float,
    ) -> str:
        """Make a token and return its secret, which nobody can ask for again."""
        _check_new(name, role, project, site, ttl_seconds)
        secret = _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        row = {
            "name": name,
            "hash": _hash(secret),
            "role": role.value,
            "project": project,
            "site": site,
            "created_at": now,
            "expires_at": now + ttl_seconds,
        }
        try:
            with self._database.writing() as connection:
                connection.execute(insert(tokens).values(row))
        except IntegrityError:
            raise StoreRefusedError(
                f"token {name!r}: there is, or was, one of this name",
                hint="choose another name: one that was revoked keeps its own, for the audit",
            ) from None
        return secret

    def check(self, secret: str, now: float) -> TokenInfo | None:
        """Whose secret this is; None if it is nobody's, expired or revoked. The same work for any answer."""
        query = select(*_COLUMNS).where(tokens.c.hash == _hash(secret))
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        token = None if row is None else _info_of(row)
        return token if token is not None and token.is_good_at(now) else None

    def list(self) -> list[TokenInfo]:
        """Every token that was ever made, the newest first; expired and revoked ones too."""
        query = select(*_COLUMNS).order_by(tokens.c.created_at.desc(), tokens.c.name).limit(_MOST_LISTED)
        with self._database.reading() as connection:
            return [_info_of(row) for row in connection.execute(query)]

    def revoke(self, name: str, now: float) -> bool:
        """Make a token useless from now on; False if it was revoked already."""
        with self._database.writing() as connection:
            known = connection.execute(select(tokens.c.name).where(tokens.c.name == name)).one_or_none()
            if known is None:
                raise StoreRefusedError(
                    f"token {hide_secrets(name)[:40]!r}: there is none of this name",
                    hint="revoke by name, not by secret; the list of tokens has the names",
                )
            done = connection.execute(
                update(tokens)
                .where(tokens.c.name == name, tokens.c.revoked_at.is_(None))
                .values(revoked_at=now)
            )
        return done.rowcount == 1


def hide_secrets(text: str) -> str:
    """A text that may be logged: what looks like the secret of a token is struck out."""
    return _SECRET.sub(f"{_PREFIX}***", text)


def _check_new(name: str, role: Role, project: str | None, site: str | None, ttl_seconds: float) -> None:
    if not name or hide_secrets(name) != name:
        raise UsageError(
            "token: needs a name that is no secret itself", hint="name it for who bears it: ci-nlp"
        )
    check_name("token name", name)
    check_name("project", project or "")
    check_name("site", site or "")
    if role is Role.AGENT and not site:
        raise UsageError(f"token {name!r}: an agent speaks for one site", hint="name it: --site frankfurt")
    if role is not Role.AGENT and site:
        raise UsageError(
            f"token {name!r}: only an agent speaks for a site; this is of a {role.value}, for site {site!r}",
            hint="leave the site out, or make it an agent's: --role agent",
        )
    if role is Role.AGENT and project is not None:
        raise UsageError(
            f"token {name!r}: an agent serves all projects of its site, got project {project!r}",
            hint="leave the project out",
        )
    if role is Role.SUBMITTER and not project:
        raise UsageError(
            f"token {name!r}: a {role.value} belongs to one project", hint="name it: --project nlp"
        )
    if project == "":
        raise UsageError(f"token {name!r}: project must not be empty", hint="leave it out for all")
    if not 0 < ttl_seconds <= MAX_TTL_SECONDS or not math.isfinite(ttl_seconds):
        raise UsageError(
            f"token {name!r}: lives for more than 0 s and at most {MAX_TTL_SECONDS / 86400:.0f} days, got "
            f"{ttl_seconds:.6g} s",
            hint="make a new one before the old one expires",
        )


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _info_of(row: Row[Any]) -> TokenInfo:
    values = row._asdict()
    return TokenInfo(**{**values, "role": Role(values["role"])})
