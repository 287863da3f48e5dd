"""The attempt's directory: what lies in it, and how is it written so that no reader sees half a document?

The supervisor imports this module too, so it stays within the few standard modules that load in
milliseconds; pathlib alone would add a quarter to the start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

LOCK = "lock"
LAUNCH = "launch.json"
STARTED = "started.json"
RESULT = "result.json"
OUTPUT = "output.log"
DESIRED = "desired.json"
REPORTS = "reports.jsonl"
SUPERVISOR_LOG = "supervisor.log"
DOOR = "door"
"""A socket: whoever connects commands a supervisor whose attempt lives on a lease."""
# Where no pipe leads from the control process to the supervisor, these do:
ORDERS = "orders.json"
"""What to run. Whoever takes it away runs the attempt; taken back, nobody ever does."""
WANTED = "wanted.json"
USAGE = "usage.json"
NOTES = "notes.jsonl"

DIRECTORY_VARIABLE = "WATTLINE_ATTEMPT"
"""Set for the command: where its runtime finds `desired.json`, and how its descendants are known."""

DOCUMENT_LIMIT_BYTES = 1 << 20


def write_document(
    directory: str | os.PathLike[str],
    name: str,
    document: Mapping[str, object],
    *,
    durable: bool = False,
    mode: int = 0o644,
) -> None:
    """Replace a document in one step; a durable one outlives a power cut, and costs a disk's time."""
    place = os.fspath(directory)
    temporary = f"{place}/.{name}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(json.dumps(document, indent=1).encode() + b"\n")
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, f"{place}/{name}")  # noqa: PTH105
    if not durable:
        return
    parent = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def read_bounded(
    directory: str | os.PathLike[str], name: str, limit_bytes: int = DOCUMENT_LIMIT_BYTES
) -> bytes | None:
    """A small document, None where there is none. A link that the command put there is not followed."""
    try:
        handle = os.open(f"{os.fspath(directory)}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(limit_bytes)
