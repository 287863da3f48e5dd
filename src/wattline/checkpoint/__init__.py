"""Checkpoints: save, verify, restore, replicate, retain."""

from wattline.checkpoint.cadence import AutoCadence
from wattline.checkpoint.errors import (
    CheckpointError,
    NothingUsableError,
    Rejected,
    StaleEpochError,
    StorageError,
)
from wattline.checkpoint.manifest import NewerSchemaError
from wattline.checkpoint.pacing import Rate
from wattline.checkpoint.reading import Restored, restore, verify
from wattline.checkpoint.replication import Copied, Coverage, copy_checkpoint, coverage, replicate
from wattline.checkpoint.repository import Entry, fence, list_checkpoints
from wattline.checkpoint.retention import Keep, Pruned, prune
from wattline.checkpoint.saving import Saved, save
from wattline.checkpoint.series import Series, Written
from wattline.checkpoint.staging import DisturbedError, Still
from wattline.checkpoint.stores import LocalStore, MissingError, PacedStore, Store, open_store

__all__ = [
    "AutoCadence",
    "CheckpointError",
    "Copied",
    "Coverage",
    "DisturbedError",
    "Entry",
    "Keep",
    "LocalStore",
    "MissingError",
    "NewerSchemaError",
    "NothingUsableError",
    "PacedStore",
    "Pruned",
    "Rate",
    "Rejected",
    "Restored",
    "Saved",
    "Series",
    "StaleEpochError",
    "Still",
    "StorageError",
    "Store",
    "Written",
    "copy_checkpoint",
    "coverage",
    "fence",
    "list_checkpoints",
    "open_store",
    "prune",
    "replicate",
    "restore",
    "save",
    "verify",
]
