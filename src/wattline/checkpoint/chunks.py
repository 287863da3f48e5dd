"""Chunks: where does each piece of a checkpoint lie, and what is it made from?

The table is part of the manifest, so one manifest is enough to restore: it names every pack it needs and
every chunk that another is a difference to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wattline.checkpoint.errors import CheckpointError

CHUNK_BYTES = 4 * 2**20
MAX_CHUNK_BYTES = 64 * 2**20  # of a writer with other ideas
MAX_CHAIN = 16
_HASH = re.compile(r"[0-9a-f]{64}")
_PACK = re.compile(r"packs/[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True, slots=True)
class Pack:
    """A file of chunks, one after the other."""

    name: str
    size_bytes: int
    blake3: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where a chunk lies and how to get it back; `base` is the hash of the chunk it is a difference to."""

    pack: str
    at: int
    stored_bytes: int
    raw_bytes: int
    width: int
    codec: str
    base: str | None


@dataclass(frozen=True, slots=True)
class Table:
    """The packs and chunks of one checkpoint; chunks by the hash of their raw bytes."""

    packs: Mapping[str, Pack]
    chunks: Mapping[str, Chunk]

    def chain(self, digest: str) -> Iterator[Chunk]:
        """A chunk, what it is a difference to, and so on."""
        while True:
            chunk = self.chunks[digest]
            yield chunk
            if chunk.base is None:
                return
            digest = chunk.base

    def only(self, digests: Iterable[str]) -> Table:
        """The part of the table that is needed to restore some chunks."""
        chunks: dict[str, Chunk] = {}
        for digest in digests:
            needed: str | None = digest
            while needed is not None and needed not in chunks:
                chunks[needed] = self.chunks[needed]
                needed = self.chunks[needed].base
        names = dict.fromkeys(chunk.pack for chunk in chunks.values())
        return Table({name: self.packs[name] for name in names}, chunks)

    def to_node(self) -> dict[str, Any]:
        """As the manifest holds it: chunks name their packs by position, which keeps it small."""
        number = {name: position for position, name in enumerate(self.packs)}
        return {
            "packs": [[pack.name, pack.size_bytes, pack.blake3] for pack in self.packs.values()],
            "chunks": {
                digest: [
                    number[chunk.pack],
                    chunk.at,
                    chunk.stored_bytes,
                    chunk.raw_bytes,
                    chunk.width,
                    chunk.codec,
                    *([] if chunk.base is None else [chunk.base]),
                ]
                for digest, chunk in self.chunks.items()
            },
        }

    @classmethod
    def from_node(cls, node: object) -> Table:
        """Believe nothing: every place lies in its pack, every base is there, no chain is long or round."""
        if not isinstance(node, dict) or set(node) != {"packs", "chunks"}:
            raise CheckpointError("the table of chunks has the wrong fields")
        raw_packs, raw_chunks = node["packs"], node["chunks"]
        if not isinstance(raw_packs, list) or not isinstance(raw_chunks, dict):
            raise CheckpointError("the table of chunks has fields of the wrong kind")
        packs = [_read_pack(raw) for raw in raw_packs]
        chunks = {_read_hash(digest): _read_chunk(raw, packs) for digest, raw in raw_chunks.items()}
        table = cls({pack.name: pack for pack in packs}, chunks)
        if len(table.packs) != len(packs):
            raise CheckpointError("a pack is named twice")
        _check_chains(table)
        return table


def _read_pack(raw: object) -> Pack:
    match raw:
        case [str(name), int(size), str(digest)] if size >= 0 and _PACK.fullmatch(name):
            return Pack(name, size, _read_hash(digest))
    raise CheckpointError(f"a pack is described as {str(raw)[:80]}")


def _read_chunk(raw: object, packs: list[Pack]) -> Chunk:
    match raw:
        case [int(number), int(at), int(stored), int(whole), int(width), str(codec), *rest] if (
            0 <= number < len(packs)
            and 0 <= at <= at + stored <= packs[number].size_bytes
            and stored >= 0
            and 0 <= whole <= MAX_CHUNK_BYTES
            and 1 <= width <= 32
            and len(rest) <= 1
        ):
            base = _read_hash(rest[0]) if rest else None
            return Chunk(packs[number].name, at, stored, whole, width, codec, base)
    raise CheckpointError(f"a chunk is described as {str(raw)[:120]}: it does not lie in a pack")


def _read_hash(text: object) -> str:
    if not isinstance(text, str) or not _HASH.fullmatch(text):
        raise CheckpointError(f"{str(text)[:70]!r} is no BLAKE3 hash")
    return text


def _check_chains(table: Table) -> None:
    depths: dict[str, int] = {}
    for digest in table.chunks:
        path: list[str] = []
        at: str | None = digest
        while at is not None and at not in depths:
            if at not in table.chunks:
                raise CheckpointError(f"a chunk is a difference to {at}, which is not in the table")
            if len(path) > MAX_CHAIN:
                raise CheckpointError(f"a chunk is the end of a chain of more than {MAX_CHAIN} differences")
            path.append(at)
            at = table.chunks[at].base
        depth = 0 if at is None else depths[at] + 1
        for each in reversed(path):
            depths[each] = depth
            depth += 1
        if depths[digest] > MAX_CHAIN:
            raise CheckpointError(f"a chunk is the end of a chain of more than {MAX_CHAIN} differences")
        base = table.chunks[digest].base
        if base is not None and table.chunks[base].raw_bytes != table.chunks[digest].raw_bytes:
            raise CheckpointError("a chunk is a difference to one of another length")
