"""Which checkpoints, and which leftovers of writers that died, may go?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wattline.checkpoint import CheckpointError, list_checkpoints, prune, restore, save


def steps(root: Path) -> list[int]:
    return [entry.step for entry in list_checkpoints(root)]


def test_saving_keeps_the_newest(tmp_path: Path) -> None:
    for step in range(1, 6):
        save(tmp_path, {}, step=step, epoch=0, keep=2)
    assert steps(tmp_path) == [5, 4]


def test_pruning_returns_what_went(tmp_path: Path) -> None:
    for step in range(1, 5):
        save(tmp_path, {}, step=step, epoch=0)
    assert [path.name for path in prune(tmp_path, keep=3)] == ["step-00000001.e0"]
    assert prune(tmp_path / "missing", keep=1) == ()


@pytest.mark.parametrize("content", [b"", b"\0" * 32], ids=["torn", "altered"])
def test_a_damaged_checkpoint_is_not_counted_among_those_kept(tmp_path: Path, content: bytes) -> None:
    for step in (1, 2, 3):
        save(tmp_path, {"w": np.ones(4)}, step=step, epoch=0)
    (tmp_path / "step-00000003.e0" / "tensors.bin").write_bytes(content)
    prune(tmp_path, keep=1)
    assert steps(tmp_path) == [3, 2]


def test_saving_does_not_count_a_torn_one_either(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, {"w": np.ones(4)}, step=step, epoch=0)
    (tmp_path / "step-00000002.e0" / "tensors.bin").write_bytes(b"")
    save(tmp_path, {"w": np.ones(4)}, step=3, epoch=0, keep=2)
    assert steps(tmp_path) == [3, 2, 1]


def test_what_was_just_saved_stays_even_below_a_damaged_higher_step(tmp_path: Path) -> None:
    save(tmp_path, {"w": np.ones(4)}, step=120, epoch=0)
    (tmp_path / "step-00000120.e0" / "tensors.bin").write_bytes(b"\0" * 32)
    save(tmp_path, {"w": np.ones(4)}, step=110, epoch=0, keep=1)
    restored = restore(tmp_path)
    assert restored is not None
    assert restored.step == 110


def test_keeping_none_at_all_is_refused(tmp_path: Path) -> None:
    save(tmp_path, {}, step=1, epoch=0)
    with pytest.raises(CheckpointError, match="cannot keep 0"):
        prune(tmp_path, keep=0)
    assert steps(tmp_path) == [1]


def test_a_removal_that_was_cut_short_is_finished_by_the_next_save(tmp_path: Path) -> None:
    save(tmp_path, {}, step=1, epoch=0).path.rename(tmp_path / ".removing-step-00000001.e0-00")
    (tmp_path / ".writing-00").mkdir()
    (tmp_path / ".fence-00").touch()
    save(tmp_path, {}, step=2, epoch=0)
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "step-00000002.e0"}
