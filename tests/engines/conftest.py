"""What the tests of this room share: processes known by a mark on their command line, and patience."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wattline.engines import LocalEngine

PATIENCE_SECONDS = 30.0


class Mark:
    """A text on the command line of processes that must all be gone in the end."""

    def __init__(self) -> None:
        self.text = f"mark-{uuid.uuid4().hex}"

    def pids(self) -> list[int]:
        """Who bears it and is alive; the dead have no command line."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.text.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
        return found


@pytest.fixture
def mark() -> Mark:
    return Mark()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    def wait(happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.01)

    return wait


@pytest.fixture(params=["auto", "duty-cycle"])
def engine(request: pytest.FixtureRequest) -> Iterator[LocalEngine]:
    engine = LocalEngine(throttle=request.param)
    yield engine
    engine.close()
