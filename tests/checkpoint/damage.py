"""Where a checkpoint's files lie, and how they come to harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from blake3 import blake3

from wattline.checkpoint import LocalStore
from wattline.checkpoint.reading import open_checkpoint


def manifest(store: LocalStore, name: str) -> Path:
    return Path(store.address) / "checkpoints" / name


def packs(store: LocalStore, name: str) -> list[Path]:
    return [Path(store.address) / pack for pack in open_checkpoint(store, name).manifest.table.packs]


def alter(file: Path, position: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[position] ^= 0xFF
    file.write_bytes(raw)


def reseal(path: Path, **changes: Any) -> None:
    """Forge a manifest: the hash is no signature, so whoever can write the file can seal it again."""
    fields = json.loads(path.read_bytes())
    del fields["blake3"]
    body = json.dumps({**fields, **changes}, separators=(",", ":"))[:-1].encode()
    path.write_bytes(body + b',"blake3":"' + blake3(body).hexdigest().encode() + b'"}\n')
