"""Below: how is a part of a store a store of its own? One receiver takes in the checkpoints of every run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from wattline.checkpoint.stores.contract import Arriving, Store, Stored, Writing


class BelowStore:
    """All objects of another store whose names begin with a prefix; it ends with a slash."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store, self._prefix = store, prefix

    @property
    def address(self) -> str:
        return f"{self._store.address}/{self._prefix.rstrip('/')}"

    @property
    def streams(self) -> int:
        return self._store.streams

    def list(self, prefix: str = "") -> Sequence[Stored]:
        found = self._store.list(self._prefix + prefix)
        return [replace(stored, name=stored.name.removeprefix(self._prefix)) for stored in found]

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        return self._store.read(self._prefix + name, start, length)

    def put(self, name: str, data: bytes, *, replace: bool) -> bool:
        return self._store.put(self._prefix + name, data, replace=replace)

    def create(self, name: str) -> AbstractContextManager[Writing]:
        return self._store.create(self._prefix + name)

    def arrive(self, name: str, size_bytes: int, blake3: str) -> Arriving:
        return self._store.arrive(self._prefix + name, size_bytes, blake3)

    def delete(self, name: str) -> None:
        self._store.delete(self._prefix + name)

    def exclusive(self) -> AbstractContextManager[None]:
        return self._store.exclusive()

    def sweep(self, older_than_seconds: float) -> int:
        return self._store.sweep(older_than_seconds)
