"""How does a file that people own get new content? Whole or not at all, with the mode it had."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from wattline.errors import UnavailableError

_USUAL_MODE = 0o644


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file; a link keeps leading to where it led."""
    target = path.resolve()
    try:
        mode = target.stat().st_mode & 0o7777 if target.exists() else _USUAL_MODE
        handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            Path(draft).replace(target)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UnavailableError(
            f"{path}: cannot be written: {error.strerror or error}",
            hint="check that this user may write there, and that the disk has room",
        ) from error
