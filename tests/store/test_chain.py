from __future__ import annotations

import hashlib
import struct

from wattline.store import Entry
from wattline.store.chain import chain


def test_the_hash_is_taken_over_the_documented_bytes() -> None:
    entry = Entry(at=1.5, kind="reading", project="nlp", actor="ü", schema=7, payload=b'{"a":1}')
    previous = bytes(range(32))
    expected = hashlib.sha256(
        b"wattline.journal.1\0"
        + previous
        + struct.pack(">Q", 42)
        + struct.pack(">d", 1.5)
        + struct.pack(">I", 7)
        + b"\0\0\0\x07reading"
        + b"\0\0\0\x03nlp"
        + b"\0\0\0\x02\xc3\xbc"
        + b'\0\0\0\x07{"a":1}'
    ).digest()
    (record,) = chain([entry], last_seq=41, last_hash=previous)
    assert (record.seq, record.previous_hash, record.hash) == (42, previous, expected)


def test_moving_a_letter_from_one_field_to_the_next_changes_the_hash() -> None:
    one = Entry(at=1, kind="ab", project="c", actor="", schema=1, payload=b"")
    two = Entry(at=1, kind="a", project="bc", actor="", schema=1, payload=b"")
    assert chain([one], 0, bytes(32))[0].hash != chain([two], 0, bytes(32))[0].hash


def test_zero_has_one_hash_whatever_its_sign() -> None:
    plus = Entry(at=0.0, kind="k", project="", actor="", schema=1, payload=b"")
    minus = Entry(at=-0.0, kind="k", project="", actor="", schema=1, payload=b"")
    assert chain([plus], 0, bytes(32))[0].hash == chain([minus], 0, bytes(32))[0].hash
