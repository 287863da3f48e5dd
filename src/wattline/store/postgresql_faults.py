"""What does an error of PostgreSQL mean to the person who must mend it?

The server says why by a code of five characters (SQLSTATE). While a connection is being made the client
library passes on only the server's words, so those are looked at there.
"""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from wattline.errors import UnavailableError
from wattline.store.errors import DatabaseAwayError

_TRY_AGAIN = "nothing was written; try again"
_CHECK_SERVER = "check that PostgreSQL runs and can be reached from here, then try again"

_BY_CODE = {
    "25006": ("can only be read: it is a standby, or set to read-only", "name the primary server"),
    "25P03": ("ended a transaction that stood still for too long", _TRY_AGAIN),
    "40001": ("was changed by somebody else at the same time", _TRY_AGAIN),
    "40P01": ("had two changes wait for each other, and ended this one", _TRY_AGAIN),
    "42501": (
        "does not let this user do that",
        "GRANT the user all rights on the database and its schema",
    ),
    "42P01": ("lacks a table that every store has", "restore it from a backup"),
    "53100": ("has no room left on its disk; this change was not written", "free space and try again"),
    "53200": ("ran out of memory; this change was not written", "give PostgreSQL more, and try again"),
    "53300": ("has too many connections", "raise max_connections, or run fewer servers"),
    "55P03": ("kept a row locked for too long", "find who holds it in pg_stat_activity; " + _TRY_AGAIN),
    "57014": ("took too long to answer", "see pg_stat_activity for what it is busy with; " + _TRY_AGAIN),
}
_BY_CLASS = {
    "28": ("refused this user", "check user and password in WATTLINE_DATABASE, and pg_hba.conf"),
    "53": ("has too little of something it needs", "see the words of the server"),
    "58": ("cannot be read or written by its disk", "check the disk and PostgreSQL's log"),
    "XX": ("is damaged, or PostgreSQL has a fault", "see PostgreSQL's log; restore from a backup"),
}
# Class 57 is an operator's doing: the server is being stopped, or has just been started.
_AWAY_CLASSES = ("08", "57")
_REFUSED_WHILE_CONNECTING = ("password", "pg_hba.conf", "authentication failed")


def explain_fault(error: DBAPIError, database: str, password: str) -> UnavailableError:
    """Say what is wrong with the database in words, and never with the password."""
    said = " ".join(str(error.orig).split())
    if password:
        said = said.replace(password, "***")
    code = getattr(error.orig, "sqlstate", None)
    meaning = _meaning_while_connecting(said) if code is None else _meaning_of(code)
    if meaning is not None:
        what, hint = meaning
        return UnavailableError(f"database {database} {what} ({said})", hint=hint)
    if error.connection_invalidated:
        what = "was lost in the middle; whether this change was written is not known"
        return DatabaseAwayError(f"database {database} {what} ({said})", hint=_CHECK_SERVER)
    return DatabaseAwayError(f"database {database} cannot be reached ({said})", hint=_CHECK_SERVER)


def _meaning_of(code: str) -> tuple[str, str] | None:
    """None where the server is only away."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    if code[:2] in _AWAY_CLASSES:
        return None
    return _BY_CLASS.get(code[:2]) or ("failed", "check the database, then try again")


def _meaning_while_connecting(said: str) -> tuple[str, str] | None:
    if "does not exist" in said and "database" in said:
        return "does not exist", "make it: createdb --encoding=UTF8 NAME"
    if "invalid" in said and ("option" in said or "value" in said):
        return "has an unknown option in its URL", "check what stands after `?` in WATTLINE_DATABASE"
    if any(words in said for words in _REFUSED_WHILE_CONNECTING):
        return _BY_CLASS["28"]
    if "too many" in said:
        return _BY_CODE["53300"]
    return None
