"""Names: may an object be called so, and may this be asked of it? The same in every store.

A name that one store takes and another refuses would be found out when a checkpoint is copied, too late.
"""

from __future__ import annotations

import re

from wattline.checkpoint.errors import CheckpointError

_PART = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,250}"
_NAME = re.compile(rf"{_PART}(/{_PART}){{0,7}}", re.ASCII)
_PREFIX = re.compile(rf"({_PART}/){{0,7}}({_PART})?", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MOST_BYTES = 2**53  # what JSON holds exactly


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> str:
    """The name, which then leads nowhere but into its store."""
    if not is_name(name):
        raise CheckpointError(
            f"{name[:80]!r} is no name of an object",
            hint="up to 8 parts of letters, digits, '.', '-' and '_', none of which begins with a dot",
        )
    return name


def check_prefix(prefix: str) -> str:
    """The prefix, with which a name could begin."""
    if not _PREFIX.fullmatch(prefix):
        raise CheckpointError(f"no name of an object begins with {prefix[:80]!r}")
    return prefix


def check_range(name: str, start: int, length: int | None) -> None:
    if start < 0 or (length is not None and length < 0):
        raise CheckpointError(f"{name} has no {length} bytes from {start}")


def check_arrival(name: str, size_bytes: int, blake3: str) -> None:
    check_name(name)
    if not 0 <= size_bytes <= _MOST_BYTES:
        raise CheckpointError(f"{name} cannot arrive with {size_bytes} bytes")
    if not _HASH.fullmatch(blake3):
        raise CheckpointError(f"{name} cannot arrive: {blake3[:70]!r} is no BLAKE3 hash")
