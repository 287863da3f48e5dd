"""What does a database error mean to the person who must mend it?"""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError

from wattline.errors import UnavailableError

_MEANINGS = {
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "its directory must exist, and this user must be able to write in it",
    ),
    sqlite3.SQLITE_PERM: ("may not be used by this user", "give this user write access to the file"),
    sqlite3.SQLITE_READONLY: (
        "is read-only",
        "give this user write access to the file and to its directory",
    ),
    sqlite3.SQLITE_FULL: (
        "has no room left on its disk; this change was not written",
        "free space on the disk and try again",
    ),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written by the disk; this change was not written",
        "check the disk and the system log, then try again",
    ),
    sqlite3.SQLITE_NOTADB: ("is not a SQLite database", "name another file, or move this one away"),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "restore it from a backup"),
    sqlite3.SQLITE_BUSY: (
        "stayed locked by another process",
        "find the process that holds the file (fuser, lsof) and let it finish",
    ),
}


def explain_fault(error: DBAPIError, database: str) -> UnavailableError:
    """Say what is wrong with the database in words; the low byte of SQLite's code is the primary one."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    if isinstance(code, int) and (meaning := _MEANINGS.get(code & 0xFF)):
        what, hint = meaning
        return UnavailableError(f"database {database} {what} ({error.orig})", hint=hint)
    return UnavailableError(
        f"database {database} failed: {error.orig}", hint="check the database, then try again"
    )
