"""Which files travel with a run, and what is in them, within bounds?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from wattline.checks.preflight.asking import Asking

LARGEST_BYTES = 4 << 20  # of one file that a check reads; a lock file of a large project has two megabytes
MOST_FILES = 5000
# Folders that never travel: made by tools, or by runs.
_LEFT_OUT = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", "out", ".wattline", ".tox"})


def source_files(asking: Asking) -> Iterator[str]:
    """Paths from the pipeline's folder, at most `MOST_FILES`: the source where it is known, else all."""
    if asking.source is not None:
        yield from sorted(asking.source)[:MOST_FILES]
        return
    found = 0
    for parent, folders, names in os.walk(asking.folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted(names):
            found += 1
            if found > MOST_FILES:
                return
            yield (Path(parent) / name).relative_to(asking.folder).as_posix()


def read_bytes(path: Path, largest_bytes: int = LARGEST_BYTES) -> bytes | None:
    """None where it is no file, too large, or may not be read."""
    try:
        if not path.is_file() or path.stat().st_size > largest_bytes:
            return None
        with path.open("rb") as file:
            raw = file.read(largest_bytes + 1)
    except OSError:
        return None
    return raw if len(raw) <= largest_bytes else None


def read_text(path: Path, largest_bytes: int = LARGEST_BYTES) -> str | None:
    raw = read_bytes(path, largest_bytes)
    return None if raw is None else raw.decode("utf-8", errors="replace")


def line_of(text: str, wanted: str) -> int | None:
    """The first line that holds this, counted from one."""
    at = text.find(wanted)
    return None if at < 0 else text.count("\n", 0, at) + 1
