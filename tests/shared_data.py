"""Where are the public data sets? Beside the repository, or where WATTLINE_SHARED_DATA says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[1]


def shared_data(path: str) -> Path:
    """A file or folder of the data sets; the test skips where it is missing."""
    named = os.environ.get("WATTLINE_SHARED_DATA")
    root = Path(named) if named else _REPOSITORY.parent / "shared" / "data"
    found = root / path
    if not found.exists():
        pytest.skip(f"{found} is missing; WATTLINE_SHARED_DATA names another folder of data sets")
    return found
