"""Manifest: what does a checkpoint say it holds, and has that been altered?

The file is one JSON object on one line. Its last field is the hash of every byte before it, so any change
shows, spaces included. This seal stays the same in every schema: an old reader can tell a manifest that is
newer than itself from one that is damaged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from wattline.checkpoint.chunks import Table
from wattline.checkpoint.errors import CheckpointError

SCHEMA = 2
MAX_MANIFEST_BYTES = 64 * 2**20


class NewerSchemaError(CheckpointError):
    """Intact, but written by a later version: to fall back silently would discard good work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a checkpoint holds: `tree` is the node that `tree.decode` reads, `table` says where tensors lie.

    `parent` is the hash of the manifest that was the newest when this one was written; nothing depends on
    it.
    """

    step: int
    epoch: int
    saved_at: float
    parent: str | None
    lineage: Mapping[str, str]
    metrics: Mapping[str, float]  # of its step, such as its loss
    table: Table
    tree: Any


def write_manifest(manifest: Manifest) -> tuple[bytes, str]:
    """The bytes of the file and the hash that seals it."""
    fields = {
        "schema": SCHEMA,
        "step": manifest.step,
        "epoch": manifest.epoch,
        "saved_at": manifest.saved_at,
        "parent": manifest.parent,
        "lineage": dict(manifest.lineage),
        "metrics": dict(manifest.metrics),
        "table": manifest.table.to_node(),
        "tree": manifest.tree,
    }
    body = json.dumps(fields, separators=(",", ":"), allow_nan=False)[:-1].encode("ascii")
    digest = blake3(body).hexdigest()
    raw = body + _seal(digest)
    if len(raw) > MAX_MANIFEST_BYTES:
        raise CheckpointError(
            f"the manifest would take {len(raw)} bytes, at most {MAX_MANIFEST_BYTES}",
            hint="keep long lists of numbers as arrays",
        )
    return raw, digest


def read_manifest(raw: bytes) -> tuple[Manifest, str]:
    """The manifest and its hash; raises when a byte differs from what was written."""
    body = raw[: -len(_seal("0" * 64))]
    digest = blake3(body).hexdigest()
    if raw != body + _seal(digest):
        raise CheckpointError("the manifest is torn or altered: its hash does not match")
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"the manifest is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise CheckpointError("the manifest is not an object")
    schema = fields.get("schema")
    if type(schema) is not int or schema < 1:
        raise CheckpointError(f"the manifest has schema {str(schema)[:40]!r}")
    if schema < SCHEMA:
        raise CheckpointError(
            f"the manifest has schema {schema}, which this version of wattline no longer reads",
            hint="restore it with the version that wrote it",
        )
    if schema > SCHEMA:
        raise NewerSchemaError(
            f"the manifest has schema {schema} and this version of wattline reads up to {SCHEMA}",
            hint="install the version that wrote it, or a later one",
        )
    return _checked(fields), digest


def _checked(fields: dict[str, Any]) -> Manifest:
    for name in ("step", "epoch"):
        if type(fields.get(name)) is not int or fields[name] < 0:
            raise CheckpointError(f"the manifest has {name} {str(fields.get(name))[:40]!r}")
    saved_at, parent, lineage = fields.get("saved_at"), fields.get("parent"), fields.get("lineage")
    if type(saved_at) is not float or not math.isfinite(saved_at):
        raise CheckpointError(f"the manifest was saved at {str(saved_at)[:40]!r}")
    if parent is not None and not isinstance(parent, str):
        raise CheckpointError(f"the manifest has parent {str(parent)[:40]!r}")
    if not isinstance(lineage, dict) or not all(isinstance(value, str) for value in lineage.values()):
        raise CheckpointError("the manifest's lineage is not a mapping of strings")
    metrics = fields.get("metrics")
    if not isinstance(metrics, dict) or not all(_is_finite(value) for value in metrics.values()):
        raise CheckpointError("the manifest's metrics are not a mapping of finite numbers")
    if "tree" not in fields:
        raise CheckpointError("the manifest has no tree")
    return Manifest(
        step=fields["step"],
        epoch=fields["epoch"],
        saved_at=saved_at,
        parent=parent,
        lineage=lineage,
        metrics=metrics,
        table=Table.from_node(fields.get("table")),
        tree=fields["tree"],
    )


def _is_finite(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _seal(digest: str) -> bytes:
    return b',"blake3":"' + digest.encode("ascii") + b'"}\n'
