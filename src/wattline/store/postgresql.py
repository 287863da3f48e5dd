"""How is PostgreSQL used, so that it keeps what SQLite keeps, for servers on several machines?

Reading is REPEATABLE READ: all statements of a transaction see one moment. Writing is READ COMMITTED, and
whoever changes the lease or the journal first locks the lease's row (FOR UPDATE): a statement that had to
wait for it then sees what the other has committed. A commit waits for the disk (synchronous_commit), and a
server that does not (fsync off) is refused.

Everything has a time limit, the server's side included: a process that was stopped in the middle of a
transaction loses its connection, and with it the locks that others wait for. A server that does not answer
at all is given up by the client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import URL, Column, Connection, Table, create_engine, event, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import ReturningInsert

from wattline.errors import UnavailableError
from wattline.store.database import WAIT_SECONDS, Database
from wattline.store.postgresql_connection import GRACE_SECONDS, BoundedConnection
from wattline.store.postgresql_faults import explain_fault

CONNECT_SECONDS = 10
LONG_SECONDS = 600

_MIGRATION_LOCK = int.from_bytes(b"wattline")  # any number that nobody else chose
_OLDEST_VERSION = 130000
_CONNECTIONS = 8
_MORE_CONNECTIONS = 8

_CONNECT = {
    "connect_timeout": CONNECT_SECONDS,
    # A cable that was pulled is noticed within half a minute, also while nothing is sent.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(WAIT_SECONDS * 1000),
    "application_name": "wattline",
}
# Stricter settings that somebody chose for synchronous_commit (remote_apply) are left as they are.
_SESSION = f"""
SELECT set_config('statement_timeout', '{WAIT_SECONDS:g}s', false),
       set_config('lock_timeout', '{WAIT_SECONDS:g}s', false),
       set_config('idle_in_transaction_session_timeout', '{WAIT_SECONDS:g}s', false),
       set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)
"""
_FACTS = """
SELECT current_setting('server_version_num')::int, current_setting('fsync'),
       current_setting('server_encoding'), pg_is_in_recovery()
"""


class PostgresDatabase(Database):
    """A database of a PostgreSQL server, shared by processes of any machine."""

    row_by_row: Mapping[str, Any] = {"stream_results": True, "max_row_buffer": 32}

    def __init__(self, url: URL) -> None:
        reader = create_engine(
            url,
            connect_args=_CONNECT,
            pool_size=_CONNECTIONS,
            max_overflow=_MORE_CONNECTIONS,
            pool_timeout=WAIT_SECONDS,
            pool_pre_ping=True,
            hide_parameters=True,
            isolation_level="REPEATABLE READ",
        )
        event.listen(reader, "do_connect", _connect)
        event.listen(reader, "connect", _prepare_connection)
        event.listen(reader, "checkin", _limit_again)
        writer = reader.execution_options(isolation_level="READ COMMITTED")
        super().__init__(_shown(url), reader, writer)
        self._password = str(url.password or "")

    def prepare(self) -> None:
        with self.reading() as connection:
            version, fsync, encoding, is_standby = connection.exec_driver_sql(_FACTS).one()
        if version < _OLDEST_VERSION:
            raise UnavailableError(
                f"database {self.name}: PostgreSQL {_OLDEST_VERSION // 10000} or later is needed,"
                f" this is {version // 10000}",
                hint="upgrade the server, or name another",
            )
        if fsync != "on":
            raise UnavailableError(
                f"database {self.name}: the server runs with fsync={fsync}, so what it says is written may be"
                " lost",
                hint="set fsync=on in postgresql.conf",
            )
        if encoding != "UTF8":
            raise UnavailableError(
                f"database {self.name}: its encoding is {encoding}, which cannot hold all names",
                hint="make it again: createdb --encoding=UTF8 --template=template0 NAME",
            )
        if is_standby:
            raise UnavailableError(
                f"database {self.name}: this server is a standby and can only be read",
                hint="name the primary, or all of them with ?target_session_attrs=read-write",
            )

    def insert_unless_there(self, table: Table, key: Column[str]) -> ReturningInsert[str]:
        return insert(table).on_conflict_do_nothing(index_elements=[key]).returning(key)

    def lock_for_migration(self, connection: Connection) -> None:
        """The lock goes with the transaction. Making an index over a large journal may take its time."""
        connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        self.allow_long(connection)

    def allow_long(self, connection: Connection) -> None:
        for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {limit} = '{LONG_SECONDS}s'")
        bounded = connection.connection.driver_connection
        assert isinstance(bounded, BoundedConnection)
        bounded.answer_seconds = LONG_SECONDS + GRACE_SECONDS

    def read_clock(self, connection: Connection) -> float:
        """The server's: machines need not agree on the time to agree on a lease."""
        seconds = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(seconds.scalar_one())

    def explain(self, error: DBAPIError) -> UnavailableError:
        return explain_fault(error, self.name, self._password)


def _connect(_dialect: object, _record: object, given: Sequence[Any], named: dict[str, Any]) -> Any:
    return BoundedConnection.connect(*given, **named)


def _limit_again(connection: BoundedConnection | None, _record: object) -> None:
    if connection is not None:
        connection.answer_seconds = WAIT_SECONDS + GRACE_SECONDS


def _prepare_connection(connection: BoundedConnection, _record: object) -> None:
    connection.answer_seconds = WAIT_SECONDS + GRACE_SECONDS
    connection.autocommit = True
    connection.execute(_SESSION)
    connection.autocommit = False


def _shown(url: URL) -> str:
    """Enough to know which database is meant, without user, password and options."""
    where = url.host or url.query.get("host") or "localhost"
    port = f":{url.port}" if url.port else ""
    return f"postgresql://{where}{port}/{url.database or ''}"
