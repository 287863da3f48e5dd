"""Who asked for what, and what was answered?

One row for every call that could change something, refused ones included. Rows are only ever added: the
database itself refuses to change or delete one. The journal says what happened; this says who asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from wattline.store.database import Database
from wattline.store.errors import StoreRefusedError
from wattline.store.records import MAX_NAME_CHARS
from wattline.store.schema import audit
from wattline.store.tokens import hide_secrets

MAX_DETAIL_CHARS = 4000
MAX_READ = 1000

_NAMES = ("actor", "project", "action", "subject", "outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One call. What is too long is cut and what looks like a secret is struck out: an audit never fails."""

    at: float
    actor: str
    project: str
    action: str
    subject: str
    outcome: str
    detail: str = ""

    def __post_init__(self) -> None:
        if not math.isfinite(self.at):
            raise StoreRefusedError(f"audit of {self.action[:40]!r}: time must be finite, got {self.at}")
        for name in _NAMES:
            object.__setattr__(self, name, _cleaned(getattr(self, name), MAX_NAME_CHARS))
        object.__setattr__(self, "detail", _cleaned(self.detail, MAX_DETAIL_CHARS))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord(AuditEntry):
    """One call as it was written down."""

    position: int


class Audit:
    """The audit of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(
        self, at: float, actor: str, project: str, action: str, subject: str, outcome: str, detail: str = ""
    ) -> None:
        entry = AuditEntry(
            at=at,
            actor=actor,
            project=project,
            action=action,
            subject=subject,
            outcome=outcome,
            detail=detail,
        )
        self.append_many([entry])

    def append_many(self, entries: Sequence[AuditEntry]) -> None:
        """All of them in one commit."""
        if entries:
            with self._database.writing() as connection:
                write_audit(connection, entries)

    def read(
        self, limit: int = 100, *, before: int | None = None, project: str | None = None
    ) -> list[AuditRecord]:
        """The newest first, at most `limit` (up to MAX_READ); those before a position; of one project."""
        query = select(audit).order_by(audit.c.position.desc()).limit(max(0, min(limit, MAX_READ)))
        if before is not None:
            query = query.where(audit.c.position < before)
        if project is not None:
            query = query.where(audit.c.project == project)
        with self._database.reading() as connection:
            return [AuditRecord(**row._asdict()) for row in connection.execute(query)]


def write_audit(connection: Connection, entries: Sequence[AuditEntry]) -> None:
    """Within a transaction of somebody else."""
    rows = [
        {"at": entry.at, "detail": entry.detail, **{name: getattr(entry, name) for name in _NAMES}}
        for entry in entries
    ]
    connection.execute(insert(audit), rows)


def _cleaned(text: str, most_chars: int) -> str:
    """Printable, short, and without secrets; hidden before it is cut, so that no half of one stays."""
    hidden = hide_secrets(text[: 16 * most_chars])  # hiding makes a text at most 8 times shorter
    shown = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in hidden
    )
    return shown if len(shown) <= most_chars else f"{shown[: most_chars - 1]}…"
