from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from wattline.store import Store, open_store


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty store: migrating once and copying is quicker than migrating for every test."""
    home = tmp_path_factory.mktemp("migrated")
    open_store(home).close()
    return home / "wattline.db"


@pytest.fixture
def home(tmp_path: Path, migrated: Path) -> Path:
    """A directory with an empty store."""
    shutil.copy(migrated, tmp_path)
    return tmp_path


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    """An empty store whose writer is this process."""
    with open_store(home) as opened:
        assert opened.lease.try_acquire("test", ttl_seconds=30)
        yield opened
