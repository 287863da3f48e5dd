"""How does the newest good checkpoint reach another site's repository?"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from wattline.checkpoint import (
    CheckpointError,
    NothingUsableError,
    StaleEpochError,
    copy_checkpoint,
    fence,
    list_checkpoints,
    restore,
    save,
    verify,
)

TREE = {"w": np.arange(50_000.0)}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there"


def test_the_copy_is_the_same_checkpoint(here: Path, there: Path) -> None:
    saved = save(here, TREE, step=7, epoch=2, lineage={"run": "r"})
    copied = copy_checkpoint(here, there)
    assert copied is not None
    assert (copied.step, copied.epoch, copied.digest) == (7, 2, saved.digest)
    assert copied.copied_bytes == saved.total_bytes
    verify(copied.path)
    assert {file.name: file.read_bytes() for file in copied.path.iterdir()} == {
        file.name: file.read_bytes() for file in saved.path.iterdir()
    }


def test_a_copy_that_is_there_already_costs_nothing_unless_it_is_damaged(here: Path, there: Path) -> None:
    save(here, TREE, step=1, epoch=0)
    first = copy_checkpoint(here, there)
    again = copy_checkpoint(here, there)
    assert first is not None
    assert again is not None
    assert again.copied_bytes == 0
    (again.path / "tensors.bin").write_bytes(b"")
    mended = copy_checkpoint(here, there)
    assert mended is not None
    assert mended.copied_bytes == first.copied_bytes
    verify(mended.path)


def test_a_damaged_newest_is_not_spread(here: Path, there: Path) -> None:
    save(here, TREE, step=1, epoch=0)
    newest = save(here, TREE, step=2, epoch=0).path / "tensors.bin"
    newest.write_bytes(b"\xff" + newest.read_bytes()[1:])
    copied = copy_checkpoint(here, there)
    assert copied is not None
    assert copied.step == 1
    shutil.rmtree(here / "step-00000001.e0")
    with pytest.raises(NothingUsableError):
        copy_checkpoint(here, there)


def test_there_may_be_nothing_to_copy(here: Path, there: Path) -> None:
    assert copy_checkpoint(here, there) is None
    assert not there.exists()


def test_a_late_replica_does_not_slip_under_a_newer_attempt(here: Path, there: Path) -> None:
    save(here, TREE, step=9, epoch=3)
    fence(there, 4)
    with pytest.raises(StaleEpochError):
        copy_checkpoint(here, there)
    assert list_checkpoints(there) == ()


def test_the_far_end_keeps_as_many_as_it_is_told(here: Path, there: Path) -> None:
    for step in (1, 2, 3):
        save(here, TREE, step=step, epoch=0)
        copy_checkpoint(here, there, keep=2)
    assert [entry.step for entry in list_checkpoints(there)] == [3, 2]


def test_the_limit_holds_and_progress_is_told(here: Path, there: Path) -> None:
    save(here, TREE, step=1, epoch=0)
    told: list[tuple[int, int]] = []
    started = time.monotonic()
    copy_checkpoint(
        here, there, bytes_per_second=800_000, progress=lambda copied, total: told.append((copied, total))
    )
    assert time.monotonic() - started >= 0.5
    assert [copied for copied, _ in told] == [200_000, 400_000]
    assert {total for _, total in told} == {400_000}
    with pytest.raises(CheckpointError, match="0 bytes per second"):
        copy_checkpoint(here, there, bytes_per_second=0)


def test_training_may_prune_the_source_while_it_is_being_copied(here: Path, there: Path) -> None:
    save(here, TREE, step=1, epoch=0)

    def overtake(copied: int, total: int) -> None:
        save(here, {}, step=2, epoch=0, keep=1)

    copied = copy_checkpoint(here, there, progress=overtake)
    assert copied is not None
    assert copied.step == 1
    assert [entry.step for entry in list_checkpoints(here)] == [2]
    restored = restore(there)
    assert restored is not None
    assert restored.tree["w"].tolist() == TREE["w"].tolist()


def test_a_copy_that_is_broken_off_leaves_nothing(here: Path, there: Path) -> None:
    save(here, TREE, step=1, epoch=0)

    def cut(copied: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_checkpoint(here, there, progress=cut)
    assert {path.name for path in there.iterdir()} == {".lock"}
