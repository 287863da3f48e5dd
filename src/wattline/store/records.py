"""What may a journal be given, and what does it promise to keep?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from wattline.store.errors import StoreRefusedError

MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
MAX_SNAPSHOT_BYTES = 256 * 1024 * 1024
MAX_NAME_CHARS = 200


def check_name(field: str, value: str) -> None:
    """Names are short and printable: they reach terminals, logs and database keys."""
    if len(value) > MAX_NAME_CHARS or not value.isprintable():
        raise StoreRefusedError(
            f"{field}: at most {MAX_NAME_CHARS} printable characters, got {len(value)}: {value[:40]!r}",
            hint=f"shorten {field}, and put details in the payload",
        )


def check_payload(subject: str, payload: bytes, limit_bytes: int = MAX_PAYLOAD_BYTES) -> None:
    if len(payload) > limit_bytes:
        raise StoreRefusedError(
            f"{subject}: payload of at most {limit_bytes} bytes, got {len(payload)}",
            hint="keep large content in the object store and name it by its digest",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a writer wants remembered; `payload` is canonical JSON, kept byte by byte."""

    at: float
    kind: str
    project: str
    actor: str
    schema: int
    payload: bytes

    def __post_init__(self) -> None:
        if not math.isfinite(self.at):
            raise StoreRefusedError(f"journal entry {self.kind!r}: time must be finite, got {self.at}")
        if not 0 <= self.schema < 2**32:
            raise StoreRefusedError(f"journal entry {self.kind!r}: schema from 0 to 2³²-1, got {self.schema}")
        check_name("kind", self.kind)
        check_name("project", self.project)
        check_name("actor", self.actor)
        check_payload(f"journal entry {self.kind!r}", self.payload)


@dataclass(frozen=True, slots=True)
class Record:
    """One entry as the journal holds it."""

    seq: int
    at: float
    kind: str
    project: str
    actor: str
    schema: int
    previous_hash: bytes
    hash: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state folded up to and including `seq`, so that a reader need not start from the first record."""

    seq: int
    digest: str
    payload: bytes


class Journal(Protocol):
    """Append-only memory of what happened and what was decided."""

    def append(self, entries: Sequence[Entry], *, settle: Sequence[str] = ()) -> int:
        """Write all entries, and settle the inbox messages they answer, or nothing; return the last seq."""
        ...

    def read(
        self, after_seq: int = 0, kinds: Iterable[str] | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        """Records after a seq in order, without holding the database between them."""
        ...

    def last_seq(self) -> int:
        """The seq of the newest record; 0 when there is none."""
        ...

    def verify(self) -> int:
        """Walk the whole chain and return the last seq; raise JournalAlteredError at the first bad one."""
        ...

    def save_snapshot(self, seq: int, digest: str, payload: bytes) -> None:
        """Keep the state folded up to `seq`. Saving the same digest again changes nothing."""
        ...

    def latest_snapshot(self, before_seq: int | None = None) -> Snapshot | None:
        """The newest snapshot, or the newest whose seq is smaller than `before_seq`."""
        ...


def check_settle(entries: Sequence[Entry], settle: Sequence[str]) -> None:
    if settle and not entries:
        raise StoreRefusedError(
            f"inbox: {len(settle)} messages to settle without a journal entry",
            hint="journal what was done about them, a refusal included",
        )
    if len(set(settle)) != len(settle):
        raise StoreRefusedError("inbox: a message to settle is named twice", hint="name each message once")


def check_snapshot(seq: int, digest: str, payload: bytes, last_seq: int) -> None:
    check_name("digest", digest)
    check_payload(f"snapshot at {seq}", payload, MAX_SNAPSHOT_BYTES)
    if not 1 <= seq <= last_seq:
        raise StoreRefusedError(
            f"snapshot at {seq}: the journal has records 1 to {last_seq}",
            hint="append first, then save the state folded up to that append",
        )


def check_same_snapshot(seq: int, digest: str, existing_digest: str) -> None:
    if digest != existing_digest:
        raise StoreRefusedError(
            f"snapshot at {seq}: was saved with digest {existing_digest!r}, now offered with {digest!r}",
            hint="the same records folded to two states: replay the journal to find where they part",
        )
