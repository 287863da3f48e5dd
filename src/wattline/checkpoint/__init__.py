"""Checkpoints: save, verify, restore, replicate, retain."""

from wattline.checkpoint.copying import Copied, copy_checkpoint
from wattline.checkpoint.errors import (
    CheckpointError,
    NothingUsableError,
    Rejected,
    StaleEpochError,
    StorageError,
)
from wattline.checkpoint.manifest import NewerSchemaError
from wattline.checkpoint.reading import Restored, restore, verify
from wattline.checkpoint.repository import Entry, fence, list_checkpoints
from wattline.checkpoint.retention import prune
from wattline.checkpoint.saving import Saved, save

__all__ = [
    "CheckpointError",
    "Copied",
    "Entry",
    "NewerSchemaError",
    "NothingUsableError",
    "Rejected",
    "Restored",
    "Saved",
    "StaleEpochError",
    "StorageError",
    "copy_checkpoint",
    "fence",
    "list_checkpoints",
    "prune",
    "restore",
    "save",
    "verify",
]
