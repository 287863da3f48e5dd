"""Which bytes are these, really? Bounded reads whose hash is known before they are used."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from wattline.errors import UnavailableError
from wattline.release.canonical import sha256_hex
from wattline.store import Digest, ObjectStore


def read_object(digest: str, objects: ObjectStore, *, most_bytes: int) -> bytes:
    """An object small enough to hold in memory, verified."""
    with objects.open(digest) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise UnavailableError(f"object {digest} has more than {most_bytes} bytes")
    if sha256_hex(data) != Digest(digest).hex:
        raise UnavailableError(
            f"object {digest} is damaged: its content has the hash {sha256_hex(data)}",
            hint="put the original again, or copy it from another site",
        )
    return data


def hash_file(path: Path) -> str:
    """The SHA-256 of a regular file, in hexadecimal; raises OSError. A pipe is no reason to wait for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        return hashlib.file_digest(file, "sha256").hexdigest()
