"""Who may write to the journal now?

One writer at a time. Each acquisition gets the next epoch, its fencing token, and every append checks inside
its own transaction that this epoch is still the newest: a writer that was replaced cannot write, however late
it wakes. So the journal is safe whatever the rule for taking over; what the rule must protect is everything
else a writer does, such as the supervisors and training processes it started.

When is a lease that was not released free?

- The holder ran on this machine (same host, boot and pid namespace): when its process is provably dead, and
  only then. Death needs no waiting, so a resume after kill -9 starts at once. The time to live does not
  count: a writer that is stopped, swapped out or starved has not let go of the processes it started, and a
  second one beside it would start them twice; nor may a jump of the wall clock end a lease. Who wants a
  stopped writer replaced ends it first.
- This very process held it, and lost its database before it could say that it lets go, or before it heard
  that it had acquired it: only the process itself knows that all it did under that lease is over, and says
  so as it acquires it again. Otherwise the lease would be held for as long as the process waits for it.
- The holder ran elsewhere: nothing can be proved from here, so its time to live decides, by the clock of
  the database where it has one of its own (PostgreSQL). On SQLite, which only containers of one machine can
  share, it is the wall clock. The holder's supervisors must fence themselves within that time. A reboot
  counts as elsewhere, and so does another container.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select, update

from wattline.store.database import Database
from wattline.store.errors import LeaseLostError, StoreRefusedError
from wattline.store.process import ProcessIdentity, identify_this_process, is_provably_dead
from wattline.store.records import check_name
from wattline.store.schema import writer_lease

# FOR UPDATE serialises writers on PostgreSQL; on SQLite the transaction already holds the only write lock.
_LEASE = select(writer_lease).where(writer_lease.c.id == 1)
_LEASE_LOCKED = _LEASE.with_for_update()
_EPOCH_LOCKED = (
    select(writer_lease.c.epoch, writer_lease.c.held).where(writer_lease.c.id == 1).with_for_update()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Proof of one acquisition; `epoch` only ever grows."""

    epoch: int
    ttl_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseInfo:
    """Who holds the lease."""

    epoch: int
    holder: str
    process: ProcessIdentity
    expires_at: float


class WriterLease:
    """The lease of one database as seen by one process."""

    def __init__(
        self,
        database: Database,
        *,
        process: ProcessIdentity | None = None,
        clock: Callable[[Connection], float] | None = None,
    ) -> None:
        self._database = database
        self._process = process or identify_this_process()
        self._clock = clock or database.read_clock
        self._held: Token | None = None

    @property
    def held(self) -> Token | None:
        """The token acquired here and not released; it may have been lost meanwhile."""
        return self._held

    def try_acquire(self, holder: str, ttl_seconds: float, *, own_is_over: bool = False) -> Token | None:
        """Become the writer, or None while another is, this process included unless its own is over."""
        check_name("holder", holder)
        if not 0 < ttl_seconds < math.inf:
            raise StoreRefusedError(f"lease: time to live of more than 0 s, got {ttl_seconds}")
        with self._database.writing() as connection:
            row = connection.execute(_LEASE_LOCKED).one()
            now = self._clock(connection)
            is_own = bool(row.held) and _process_of(row) == self._process
            if not (self._is_free(row, now) or (is_own and own_is_over)):
                return None
            token = Token(epoch=row.epoch + 1, ttl_seconds=ttl_seconds)
            connection.execute(
                update(writer_lease).values(
                    epoch=token.epoch,
                    held=True,
                    holder=holder,
                    hostname=self._process.hostname,
                    boot_id=self._process.boot_id,
                    pid_namespace=self._process.pid_namespace,
                    pid=self._process.pid,
                    started_ticks=self._process.started_ticks,
                    expires_at=now + ttl_seconds,
                )
            )
        self._held = token
        return token

    def renew(self, token: Token) -> None:
        """Live for another time to live from now."""

        def renew_once() -> None:
            with self._database.writing() as connection:
                _require(connection, token)
                expires_at = self._clock(connection) + token.ttl_seconds
                connection.execute(update(writer_lease).values(expires_at=expires_at))

        self._database.patiently(renew_once)

    def release(self, token: Token) -> None:
        """Let go at once; a lease that another took meanwhile stays theirs."""
        with self._database.writing() as connection:
            connection.execute(
                update(writer_lease).where(writer_lease.c.epoch == token.epoch).values(held=False)
            )
        if self._held == token:
            self._held = None

    def current(self) -> LeaseInfo | None:
        """Who is the writer, or None when whoever asks could become it."""
        with self._database.reading() as connection:
            return self.current_in(connection)

    def current_in(self, connection: Connection) -> LeaseInfo | None:
        """The same, within a transaction of somebody else."""
        row = connection.execute(_LEASE).one()
        if self._is_free(row, self._clock(connection)):
            return None
        return LeaseInfo(
            epoch=row.epoch, holder=row.holder, process=_process_of(row), expires_at=row.expires_at
        )

    def require(self, connection: Connection) -> None:
        """Raise LeaseLostError unless this process is the writer for the rest of this transaction."""
        if self._held is None:
            raise LeaseLostError(
                "the writer lease was not acquired by this process",
                hint="acquire it first; if another process holds it, hand work to that one through the inbox",
            )
        _require(connection, self._held)

    def _is_free(self, row: Row[Any], now: float) -> bool:
        if not row.held:
            return True
        holder = _process_of(row)
        if self._process.can_see(holder):
            return is_provably_dead(holder)
        return now >= float(row.expires_at)


def _require(connection: Connection, token: Token) -> None:
    row = connection.execute(_EPOCH_LOCKED).one()
    if row.epoch != token.epoch or not row.held:
        raise LeaseLostError(
            f"the writer lease of epoch {token.epoch} is over: the newest epoch is {row.epoch}",
            hint="another process writes now; stop what this one started, or resume under a new lease",
        )


def _process_of(row: Row[Any]) -> ProcessIdentity:
    return ProcessIdentity(
        hostname=row.hostname,
        boot_id=row.boot_id,
        pid_namespace=row.pid_namespace,
        pid=row.pid,
        started_ticks=row.started_ticks,
    )
