"""Stores: what may be asked of a place that keeps checkpoints, whatever it is made of?

A store keeps named objects. A name is seen whole or not at all, and what is seen survives a power cut. Names
are relative paths of ASCII letters, digits, `.`, `-`, `_` and `/`; none of their parts begins with a dot.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from wattline.checkpoint.errors import CheckpointError


class MissingError(CheckpointError):
    """There is no object of this name, or it went while it was read."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as a listing shows it."""

    name: str
    size_bytes: int
    modified_at: float
    """By the store's own clock."""


class Writing(Protocol):
    """An object being written from its first byte to its last; unless finished it leaves nothing behind."""

    def write(self, data: memoryview) -> None: ...

    def finish(self) -> None:
        """Make it durable, then let it be seen; an object of that name is replaced."""


class Arriving(Protocol):
    """An object that arrives in parts, in any order, from several threads, and over several tries.

    Parts are numbered from 0 and of `part_bytes`, all but the last. What has arrived survives a crash of
    either end and is found again by whoever asks for the same name, size and hash.
    """

    @property
    def part_bytes(self) -> int: ...

    @property
    def missing(self) -> Sequence[int]:
        """Parts that are not there yet, in order."""

    def put(self, number: int, data: memoryview) -> None:
        """Returns when the far end has it."""

    def finish(self) -> None:
        """Compare its hash where it arrived, then let it be seen. If it differs, nothing that arrived is kept
        and CheckpointError says so."""


class Store(Protocol):
    """Errors are CheckpointErrors: StorageError where trying again may help, MissingError, and others."""

    @property
    def address(self) -> str:
        """For people: a path or a URL, without secrets."""

    @property
    def streams(self) -> int:
        """How many parts to send at once: each waits for the far end's word, so a long way takes many."""

    def list(self, prefix: str = "") -> Sequence[Stored]:
        """Every object whose name begins so, by name."""

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """So many bytes from `start`, or all that follow; fewer only where the object ends."""

    def put(self, name: str, data: bytes, *, replace: bool) -> bool:
        """A small object in one go; False, and nothing done, where one of that name exists and must not be
        replaced. Of two that put the same name at once without `replace`, one is told False."""

    def create(self, name: str) -> AbstractContextManager[Writing]: ...

    def arrive(self, name: str, size_bytes: int, blake3: str) -> Arriving: ...

    def delete(self, name: str) -> None:
        """Nothing happens where there is none."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other writers of this store out for a short change, where the store can; the holder's death
        ends it."""

    def sweep(self, older_than_seconds: float) -> int:
        """Remove what unfinished writings and arrivals left that nobody has touched for so long; how many
        bytes went."""
