"""Which bytes tie one journal record to the one before?

Each record carries the hash of the record before it and its own, so changing, dropping or swapping any
record breaks every hash after it. The hash is SHA-256 over these bytes, integers and floats big-endian:

    b"wattline.journal.1\\0"               19 bytes, so that no other hash of ours can be taken for this one
    previous hash                         32 bytes; zeros before the first record
    seq                                   unsigned 64 bits, counting from 1 without gaps
    at                                    IEEE 754 binary64, seconds since 1970 UTC; zero is never negative
    schema                                unsigned 32 bits
    kind, project, actor, payload         each: its length in bytes (unsigned 32 bits), then the bytes (UTF-8)

The lengths keep one field's end from being read as the next one's beginning.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from hashlib import sha256

from wattline.store.errors import JournalAlteredError
from wattline.store.records import Entry, Record

GENESIS_HASH = bytes(32)

_TAG = b"wattline.journal.1\0"
_FIXED = struct.Struct(">QdI")
_LENGTH = struct.Struct(">I")


def chain(entries: Iterable[Entry], last_seq: int, last_hash: bytes) -> list[Record]:
    """Give entries their place after the last record."""
    records = []
    seq, previous = last_seq, last_hash
    for entry in entries:
        seq += 1
        record_hash = _hash(
            previous, seq, entry.at, entry.kind, entry.project, entry.actor, entry.schema, entry.payload
        )
        records.append(
            Record(
                seq,
                entry.at,
                entry.kind,
                entry.project,
                entry.actor,
                entry.schema,
                previous,
                record_hash,
                entry.payload,
            )
        )
        previous = record_hash
    return records


class ChainWalk:
    """From the first record on, one by one."""

    def __init__(self) -> None:
        self.seq = 0
        self.hash = GENESIS_HASH

    def take(self, record: Record) -> None:
        """Raise unless this is the next one, as it was appended."""
        seq = self.seq + 1
        if record.seq != seq:
            raise JournalAlteredError(seq, f"is missing; the next one found is {record.seq}")
        if record.previous_hash != self.hash or not _holds(record):
            raise JournalAlteredError(
                seq, "was altered: its hash does not match its content or the one before"
            )
        self.seq, self.hash = seq, record.hash

    def end(self, last_seq: int, last_hash: bytes) -> None:
        """Raise unless the journal ended here."""
        if self.seq < last_seq:
            raise JournalAlteredError(self.seq + 1, f"is missing; the journal had {last_seq} records")
        if self.seq > last_seq:
            raise JournalAlteredError(last_seq + 1, "was not appended by a writer")
        if self.hash != last_hash:
            raise JournalAlteredError(self.seq, "was altered: its hash is not the one the journal ended with")


def verify_chain(records: Iterable[Record], last_seq: int, last_hash: bytes) -> int:
    """Walk records from the first; those after `last_seq` were appended meanwhile and are left alone."""
    walk = ChainWalk()
    for record in records:
        if walk.seq == last_seq:
            break
        walk.take(record)
    walk.end(last_seq, last_hash)
    return walk.seq


def _holds(record: Record) -> bool:
    try:
        return record.hash == _hash(
            record.previous_hash,
            record.seq,
            record.at,
            record.kind,
            record.project,
            record.actor,
            record.schema,
            record.payload,
        )
    except (AttributeError, TypeError, struct.error):
        return False  # SQLite keeps any type in any column: what cannot be packed was not written by us


def _hash(
    previous: bytes, seq: int, at: float, kind: str, project: str, actor: str, schema: int, payload: bytes
) -> bytes:
    # at + 0.0 turns -0.0 into 0.0: SQLite stores whole floats as integers and would lose the sign.
    parts = [_TAG, previous, _FIXED.pack(seq, at + 0.0, schema)]
    for field in (kind.encode(), project.encode(), actor.encode(), payload):
        parts += (_LENGTH.pack(len(field)), field)
    return sha256(b"".join(parts)).digest()
