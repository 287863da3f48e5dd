from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.serving import Running, serving
from cli.fixtures import wattline

__all__ = ["wattline"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that conducts, shared by the tests of a file."""
    with serving(tmp_path_factory.mktemp("served") / "home") as running:
        wait_until_conducting(running)
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Running]:
    """A server of this test alone."""
    with serving(tmp_path / "home") as running:
        wait_until_conducting(running)
        yield running


def wait_until_conducting(running: Running) -> None:
    give_up_at = time.monotonic() + 30
    while not running.shift.is_conducting or running.call("GET", "/api/v1/sites").status != 200:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
