"""What can go wrong with a checkpoint, by what the caller can do about it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wattline.errors import WattlineError

_OUT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class CheckpointError(WattlineError):
    """A checkpoint is torn, altered, too new to read, or holds what may not be held."""


class StorageError(CheckpointError):
    """The disk would not take it: full, read-only, gone. The same save may succeed later."""


class StaleEpochError(CheckpointError):
    """A newer attempt owns this repository; this one has been fenced off and must stop."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A checkpoint that was passed over, and why."""

    name: str
    why: str


class NothingUsableError(CheckpointError):
    """There are checkpoints, and every one of them is damaged."""

    def __init__(self, address: str, rejected: tuple[Rejected, ...]) -> None:
        reasons = "; ".join(one.why for one in rejected)
        super().__init__(
            f"{address}: none of {len(rejected)} checkpoints can be used: {reasons}",
            hint="copy one from another site, or move these away to start from the beginning",
        )
        self.rejected = rejected


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Turn what the operating system says while writing into an error that names a remedy."""
    try:
        yield
    except OSError as error:
        hint = "check that the directory exists, can be written to and is still mounted"
        if error.errno in _OUT_OF_SPACE:
            hint = "free some space or keep fewer checkpoints; those already there are intact"
        raise StorageError(f"{doing}: {error.strerror or error}", hint=hint) from error
