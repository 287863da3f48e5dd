from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.running import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Where a test writes a pipeline and runs it; nothing is left running."""
    desk = Desk(tmp_path)
    yield desk
    desk.close()
