"""A store behind a rate: how is copying kept from taking the whole link or disk?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from wattline.checkpoint.pacing import Rate
from wattline.checkpoint.stores.contract import Arriving, Store, Stored, Writing


class PacedStore:
    """Implements Store over another one: what is written to it waits for its share of the rate first."""

    def __init__(self, store: Store, rate: Rate) -> None:
        self._store, self._rate = store, rate

    @property
    def address(self) -> str:
        return self._store.address

    @property
    def streams(self) -> int:
        return self._store.streams

    def list(self, prefix: str = "") -> Sequence[Stored]:
        return self._store.list(prefix)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        return self._store.read(name, start, length)

    def put(self, name: str, data: bytes, *, replace: bool) -> bool:
        self._rate.take(len(data))
        return self._store.put(name, data, replace=replace)

    @contextmanager
    def create(self, name: str) -> Iterator[Writing]:
        with self._store.create(name) as writing:
            yield _PacedWriting(writing, self._rate)

    def arrive(self, name: str, size_bytes: int, blake3: str) -> Arriving:
        return _PacedArriving(self._store.arrive(name, size_bytes, blake3), self._rate)

    def delete(self, name: str) -> None:
        self._store.delete(name)

    def exclusive(self) -> AbstractContextManager[None]:
        return self._store.exclusive()

    def sweep(self, older_than_seconds: float) -> int:
        return self._store.sweep(older_than_seconds)


class _PacedWriting:
    def __init__(self, writing: Writing, rate: Rate) -> None:
        self._writing, self._rate = writing, rate

    def write(self, data: memoryview) -> None:
        for piece in self._rate.pieces(data):
            self._writing.write(piece)

    def finish(self) -> None:
        self._writing.finish()


class _PacedArriving:
    def __init__(self, arriving: Arriving, rate: Rate) -> None:
        self._arriving, self._rate = arriving, rate

    @property
    def part_bytes(self) -> int:
        return self._arriving.part_bytes

    @property
    def missing(self) -> Sequence[int]:
        return self._arriving.missing

    def put(self, number: int, data: memoryview) -> None:
        self._rate.take(len(data))
        self._arriving.put(number, data)

    def finish(self) -> None:
        self._arriving.finish()
