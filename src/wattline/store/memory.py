"""How do scripted worlds and the twin keep a journal without a disk?

The same chain and the same rules as on disk, without lease and inbox: nobody else can write here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from wattline.store.chain import GENESIS_HASH, chain, verify_chain
from wattline.store.errors import StoreRefusedError
from wattline.store.records import Entry, Record, Snapshot, check_same_snapshot, check_settle, check_snapshot


class MemoryJournal:
    """A journal that lives as long as its process; see `Journal` for what each call promises."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._snapshots: dict[int, Snapshot] = {}

    def append(self, entries: Sequence[Entry], *, settle: Sequence[str] = ()) -> int:
        check_settle(entries, settle)
        if settle:
            raise StoreRefusedError(f"inbox: a journal in memory has none, got {settle[0]!r} to settle")
        self._records += chain(entries, self.last_seq(), self._last_hash())
        return self.last_seq()

    def read(
        self, after_seq: int = 0, kinds: Iterable[str] | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        # By index, not over the list: a reader sees what is appended while it reads, as on disk.
        wanted = None if kinds is None else frozenset(kinds)
        records = (record for record in self._after(after_seq) if wanted is None or record.kind in wanted)
        return islice(records, limit)

    def _after(self, seq: int) -> Iterator[Record]:
        while seq < len(self._records):
            yield self._records[seq]
            seq += 1

    def last_seq(self) -> int:
        return len(self._records)

    def _last_hash(self) -> bytes:
        return self._records[-1].hash if self._records else GENESIS_HASH

    def verify(self) -> int:
        return verify_chain(self._records, self.last_seq(), self._last_hash())

    def save_snapshot(self, seq: int, digest: str, payload: bytes) -> None:
        check_snapshot(seq, digest, payload, self.last_seq())
        existing = self._snapshots.setdefault(seq, Snapshot(seq, digest, payload))
        check_same_snapshot(seq, digest, existing.digest)

    def latest_snapshot(self, before_seq: int | None = None) -> Snapshot | None:
        seqs = (seq for seq in self._snapshots if before_seq is None or seq < before_seq)
        newest = max(seqs, default=None)
        return None if newest is None else self._snapshots[newest]
