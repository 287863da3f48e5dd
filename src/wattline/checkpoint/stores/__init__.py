"""Stores: where checkpoints lie. One contract, several places."""

from __future__ import annotations

import os
from pathlib import Path

from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.pacing import Rate
from wattline.checkpoint.stores.contract import Arriving, MissingError, Store, Stored, Writing
from wattline.checkpoint.stores.local import LocalStore
from wattline.checkpoint.stores.paced import PacedStore

__all__ = [
    "Arriving",
    "LocalStore",
    "MissingError",
    "PacedStore",
    "Store",
    "Stored",
    "Writing",
    "open_store",
]

TOKEN_VARIABLE = "WATTLINE_TOKEN"  # noqa: S105 - the name of a variable, not what it holds


def open_store(address: str | Path, *, bytes_per_second: float | None = None) -> Store:
    """A folder, `s3://bucket/prefix` or a receiver's `http://host:port`; written to no faster than told."""
    text = str(address)
    rate = None if bytes_per_second is None else Rate(bytes_per_second)
    if text.startswith(("http://", "https://")):
        from wattline.checkpoint.stores.http import HttpStore

        token = os.environ.get(TOKEN_VARIABLE)
        if not token:
            raise CheckpointError(
                f"{text}: asks for a token and {TOKEN_VARIABLE} is not set",
                hint=f"set {TOKEN_VARIABLE} to the receiver's token",
            )
        return HttpStore(text, token, rate=rate)
    if text.startswith("s3://"):
        from wattline.checkpoint.stores.s3 import S3Store

        store: Store = S3Store.from_url(text)
    elif "://" in text:
        raise CheckpointError(
            f"{text[:100]}: is no store", hint="name a folder, s3://bucket/prefix or http://host:port"
        )
    else:
        store = LocalStore(Path(text).absolute())
    return store if rate is None else PacedStore(store, rate)
