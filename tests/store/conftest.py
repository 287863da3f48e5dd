from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wattline.store import Store, open_store

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.needs("initdb"))]


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


@pytest.fixture(params=DATABASES)
def where(request: pytest.FixtureRequest, home: Path) -> str:
    """What `open_store` is given: an empty store of each kind."""
    if request.param == "sqlite":
        return str(home)
    return str(request.getfixturevalue("postgres").empty_store())


@pytest.fixture(params=DATABASES)
def make_fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes databases of each kind in which nothing is yet."""
    if request.param == "sqlite":
        return lambda: tempfile.mkdtemp(dir=tmp_path)
    server = request.getfixturevalue("postgres")
    return lambda: str(server.url(server.new_database()))


@pytest.fixture
def fresh(make_fresh: Callable[[], str]) -> str:
    return make_fresh()


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    """An empty store whose writer is this process."""
    with open_store(where) as opened:
        assert opened.lease.try_acquire("test", ttl_seconds=30)
        yield opened
