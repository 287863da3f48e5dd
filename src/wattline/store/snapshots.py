"""How is a snapshot kept, so that a reader can trust it as much as the chain?

Its seal is SHA-256 over b"wattline.snapshot.1\\0", the hash of the record at its seq (32 bytes), its seq
(unsigned 64 bits, big-endian), its digest's length (unsigned 32 bits) and UTF-8 bytes, and its payload. So a
snapshot holds only for the very history it was folded from.
"""

from __future__ import annotations

import struct
from hashlib import sha256

from sqlalchemy import Connection, delete, insert, select

from wattline.store.errors import JournalAlteredError
from wattline.store.records import Snapshot, check_same_snapshot
from wattline.store.schema import journal, snapshots

_KEPT = 3  # the newest, and two to fall back on
_TAG = b"wattline.snapshot.1\0"
_FIXED = struct.Struct(">QI")


def write_snapshot(connection: Connection, snapshot: Snapshot) -> None:
    existing = connection.execute(
        select(snapshots.c.digest).where(snapshots.c.seq == snapshot.seq)
    ).scalar_one_or_none()
    if existing is not None:
        check_same_snapshot(snapshot.seq, snapshot.digest, existing)
        return
    connection.execute(
        insert(snapshots).values(
            seq=snapshot.seq,
            digest=snapshot.digest,
            seal=_seal(_record_hash(connection, snapshot.seq), snapshot),
            payload=snapshot.payload,
        )
    )
    kept = select(snapshots.c.seq).order_by(snapshots.c.seq.desc()).limit(_KEPT)
    connection.execute(delete(snapshots).where(snapshots.c.seq.not_in(kept)))


def read_latest_snapshot(connection: Connection, before_seq: int | None) -> Snapshot | None:
    query = select(snapshots).order_by(snapshots.c.seq.desc()).limit(1)
    if before_seq is not None:
        query = query.where(snapshots.c.seq < before_seq)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    snapshot = Snapshot(row.seq, row.digest, row.payload)
    if row.seal != _seal(_record_hash(connection, row.seq), snapshot):
        raise JournalAlteredError(row.seq, "its snapshot was altered, or folded from another history")
    return snapshot


def _record_hash(connection: Connection, seq: int) -> bytes:
    found: bytes | None = connection.execute(
        select(journal.c.hash).where(journal.c.seq == seq)
    ).scalar_one_or_none()
    if found is None:
        raise JournalAlteredError(seq, "is missing")
    return found


def _seal(record_hash: bytes, snapshot: Snapshot) -> bytes:
    digest = snapshot.digest.encode()
    fixed = _FIXED.pack(snapshot.seq, len(digest))
    return sha256(b"".join((_TAG, record_hash, fixed, digest, snapshot.payload))).digest()
