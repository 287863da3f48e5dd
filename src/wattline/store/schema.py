"""Which tables does this version of the store read and write?

The migrations make them; a test holds the two together. `payload` is the last column on purpose: SQLite
reads a row from the left, so a scan that filters by kind does not touch large payloads.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    column,
    table,
)

SCHEMA_VERSION = 2
# Alembic makes and fills this one.
schema_version = table("wattline_schema", column("version_num", String(32)))

# SQLite makes a primary key the row's own address only when its type is exactly INTEGER (64 bits there).
SEQ = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()

journal = Table(
    "journal",
    metadata,
    Column("seq", SEQ, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", String(200), nullable=False),
    Column("project", String(200), nullable=False),
    Column("actor", String(200), nullable=False),
    Column("schema", BigInteger, nullable=False),
    Column("previous_hash", LargeBinary(32), nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

journal_head = Table(
    "journal_head",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("seq", SEQ, ForeignKey("journal.seq"), primary_key=True, autoincrement=False),
    Column("digest", String(200), nullable=False),
    Column("seal", LargeBinary(32), nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

writer_lease = Table(
    "writer_lease",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("held", Boolean, nullable=False),
    Column("holder", String(200), nullable=False),
    Column("hostname", String(255), nullable=False),
    Column("boot_id", String(64), nullable=False),
    Column("pid_namespace", String(64), nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("started_ticks", BigInteger, nullable=False),
    Column("expires_at", Double, nullable=False),
)

inbox = Table(
    "inbox",
    metadata,
    Column("position", SEQ, primary_key=True),
    Column("id", String(200), nullable=False, unique=True),
    Column("kind", String(200), nullable=False),
    Column("settled_seq", SEQ, ForeignKey("journal.seq")),
    Column("payload", LargeBinary, nullable=False),
)
Index(
    "inbox_pending",
    inbox.c.position,
    sqlite_where=inbox.c.settled_seq.is_(None),
    postgresql_where=inbox.c.settled_seq.is_(None),
)

tokens = Table(
    "tokens",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("hash", LargeBinary(32), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    Column("project", String(200)),
    Column("site", String(200)),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("revoked_at", Double),
)

# The migration also makes triggers that refuse to change or delete a row.
audit = Table(
    "audit",
    metadata,
    Column("position", SEQ, primary_key=True),
    Column("at", Double, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("project", String(200), nullable=False),
    Column("action", String(200), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("outcome", String(200), nullable=False),
    Column("detail", Text, nullable=False),
)
