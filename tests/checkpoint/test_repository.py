"""Which checkpoints are in a directory, and whose turn is it to add one?"""

from __future__ import annotations

from pathlib import Path

import pytest

from wattline.checkpoint import CheckpointError, StaleEpochError, fence, list_checkpoints, save


def test_only_names_of_checkpoints_are_listed_newest_first(tmp_path: Path) -> None:
    for name in (
        "step-00000010.e1",
        "step-00000002.e2",
        "step-123456789.e1",
        "step-10.e1",
        "step-00000010.e01",
        "step-00000010",
        ".writing-00",
        "notes",
    ):
        (tmp_path / name).mkdir()
    assert [(entry.epoch, entry.step) for entry in list_checkpoints(tmp_path)] == [
        (2, 2),
        (1, 123456789),
        (1, 10),
    ]


def test_a_repository_that_cannot_be_listed_is_an_error_not_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(CheckpointError, match="cannot be listed"):
        list_checkpoints(file)


def test_a_fence_only_rises(tmp_path: Path) -> None:
    fence(tmp_path, 3)
    fence(tmp_path, 3)
    with pytest.raises(StaleEpochError):
        fence(tmp_path, 2)
    fence(tmp_path, 5)
    with pytest.raises(StaleEpochError):
        save(tmp_path, {}, step=1, epoch=4)


def test_a_fence_makes_the_repository_it_guards(tmp_path: Path) -> None:
    fence(tmp_path / "new", 2)
    with pytest.raises(StaleEpochError):
        save(tmp_path / "new", {}, step=1, epoch=1)


@pytest.mark.parametrize("content", ["", "3", "x\n", "-1\n", "1" * 70, "\xff\n"])
def test_an_unreadable_fence_lets_nobody_publish(tmp_path: Path, content: str) -> None:
    (tmp_path / ".fence").write_text(content, encoding="latin-1")
    with pytest.raises(CheckpointError, match="instead of an epoch"):
        save(tmp_path, {}, step=1, epoch=9)
