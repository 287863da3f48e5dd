"""Which checkpoints are in a directory, and whose turn is it to add one?"""

from __future__ import annotations

from pathlib import Path

import pytest

from wattline.checkpoint import CheckpointError, LocalStore, StaleEpochError, fence, list_checkpoints, save


def test_only_names_of_checkpoints_are_listed_newest_first(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    for name in (
        "step-00000010.e1",
        "step-00000002.e2",
        "step-123456789.e1",
        "step-10.e1",
        "step-00000010.e01",
        "step-00000010",
        ".step-00000011.e1",
        "notes",
    ):
        (tmp_path / "checkpoints" / name).touch()
    assert [(entry.epoch, entry.step) for entry in list_checkpoints(LocalStore(tmp_path))] == [
        (2, 2),
        (1, 123456789),
        (1, 10),
    ]


def test_a_repository_that_cannot_be_listed_is_an_error_not_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(CheckpointError, match="cannot be listed"):
        list_checkpoints(LocalStore(file))


def test_a_fence_only_rises(tmp_path: Path) -> None:
    fence(LocalStore(tmp_path), 3)
    fence(LocalStore(tmp_path), 3)
    with pytest.raises(StaleEpochError):
        fence(LocalStore(tmp_path), 2)
    fence(LocalStore(tmp_path), 5)
    with pytest.raises(StaleEpochError):
        save(LocalStore(tmp_path), {}, step=1, epoch=4)


def test_a_fence_makes_the_repository_it_guards(tmp_path: Path) -> None:
    fence(LocalStore(tmp_path / "new"), 2)
    with pytest.raises(StaleEpochError):
        save(LocalStore(tmp_path / "new"), {}, step=1, epoch=1)


@pytest.mark.parametrize("content", [b"", b"3", b"{}", b'{"epoch": -1, "before": []}', b"\xff", b"[" * 99999])
def test_an_unreadable_fence_lets_nobody_publish(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "fence").write_bytes(content)
    with pytest.raises(CheckpointError, match="instead of an epoch"):
        save(LocalStore(tmp_path), {}, step=1, epoch=9)


def test_what_an_old_attempt_publishes_after_it_was_fenced_off_does_not_count(tmp_path: Path) -> None:
    """In a store where nobody can be kept out: here a file is put as if there were no lock."""
    store = LocalStore(tmp_path)
    early = save(store, "early", step=1, epoch=1)
    late = save(store, "late", step=2, epoch=1)
    raw = store.read(f"checkpoints/{late.name}")
    store.delete(f"checkpoints/{late.name}")
    fence(store, 2)
    store.put(f"checkpoints/{late.name}", raw, replace=True)
    assert [entry.name for entry in list_checkpoints(store)] == [early.name]
    fence(store, 3)
    assert [entry.name for entry in list_checkpoints(store)] == [early.name]
