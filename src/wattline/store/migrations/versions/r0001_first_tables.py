"""Version 1: journal with its head and snapshots, writer lease, inbox, documents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_journal()
    _create_snapshots()
    _create_writer_lease()
    _create_inbox()


def _create_journal() -> None:
    op.create_table(
        "journal",
        sa.Column("seq", _SEQ, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.String(200), nullable=False),
        sa.Column("project", sa.String(200), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("schema", sa.BigInteger, nullable=False),
        sa.Column("previous_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("payload", sa.LargeBinary, nullable=False),
    )
    head = op.create_table(
        "journal_head",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
    )
    op.bulk_insert(head, [{"id": 1, "seq": 0, "hash": bytes(32)}])


def _create_snapshots() -> None:
    op.create_table(
        "snapshots",
        sa.Column("seq", _SEQ, sa.ForeignKey("journal.seq"), primary_key=True, autoincrement=False),
        sa.Column("digest", sa.String(200), nullable=False),
        sa.Column("seal", sa.LargeBinary(32), nullable=False),
        sa.Column("payload", sa.LargeBinary, nullable=False),
    )


def _create_writer_lease() -> None:
    lease = op.create_table(
        "writer_lease",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("held", sa.Boolean, nullable=False),
        sa.Column("holder", sa.String(200), nullable=False),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("boot_id", sa.String(64), nullable=False),
        sa.Column("pid_namespace", sa.String(64), nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("started_ticks", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    nobody = {
        "id": 1,
        "epoch": 0,
        "held": False,
        "holder": "",
        "hostname": "",
        "boot_id": "",
        "pid_namespace": "",
        "pid": 0,
        "started_ticks": 0,
        "expires_at": 0.0,
    }
    op.bulk_insert(lease, [nobody])


def _create_inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("position", _SEQ, primary_key=True),
        sa.Column("id", sa.String(200), nullable=False, unique=True),
        sa.Column("kind", sa.String(200), nullable=False),
        sa.Column("settled_seq", _SEQ, sa.ForeignKey("journal.seq")),
        sa.Column("payload", sa.LargeBinary, nullable=False),
    )
    pending = sa.text("settled_seq IS NULL")
    op.create_index("inbox_pending", "inbox", ["position"], sqlite_where=pending, postgresql_where=pending)
