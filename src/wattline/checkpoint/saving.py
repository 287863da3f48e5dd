"""Saving: how does a tree in memory become a checkpoint on disk?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from blake3 import blake3

from wattline.checkpoint.draft import Draft, open_draft
from wattline.checkpoint.manifest import Manifest, write_manifest
from wattline.checkpoint.reading import CHUNK_BYTES
from wattline.checkpoint.repository import checkpoint_name
from wattline.checkpoint.tree import Array, TensorReference, encode

_NO_LINEAGE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A published checkpoint; `digest` is the hash of its manifest, and so of everything in it."""

    path: Path
    step: int
    epoch: int
    digest: str
    total_bytes: int


def save(
    root: Path,
    tree: object,
    *,
    step: int,
    epoch: int,
    keep: int | None = None,
    lineage: Mapping[str, str] = _NO_LINEAGE,
) -> Saved:
    """Publish a checkpoint; when this returns it survives a power cut, and only `keep` are left."""
    checkpoint_name(step, epoch)
    with open_draft(root, epoch=epoch) as draft:
        offset = 0

        def put(array: Array) -> TensorReference:
            nonlocal offset
            reference = _write_array(draft, array, offset)
            offset += reference.nbytes
            return reference

        node = encode(tree, put)
        raw, digest = write_manifest(
            Manifest(step=step, epoch=epoch, lineage=lineage, tensors_bytes=offset, tree=node)
        )
        draft.finish(raw)
        path = draft.publish(step=step, epoch=epoch, keep=keep)
    return Saved(path=path, step=step, epoch=epoch, digest=digest, total_bytes=offset + len(raw))


def _write_array(draft: Draft, array: Array, offset: int) -> TensorReference:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    digest = blake3()
    for start in range(0, array.nbytes, CHUNK_BYTES):
        chunk = flat[start : start + CHUNK_BYTES]
        digest.update(chunk)
        draft.write(chunk)
    return TensorReference(
        dtype=array.dtype.str,
        shape=array.shape,
        offset=offset,
        nbytes=array.nbytes,
        blake3=digest.hexdigest(),
    )
