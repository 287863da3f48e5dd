"""How does another store come to have the same checkpoints?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from checkpoint.damage import alter, packs
from wattline.checkpoint import (
    CheckpointError,
    Keep,
    LocalStore,
    NothingUsableError,
    StaleEpochError,
    copy_checkpoint,
    coverage,
    fence,
    list_checkpoints,
    prune,
    replicate,
    restore,
    save,
    verify,
)

TREE = {"w": np.random.default_rng(0).integers(0, 256, 3_500_000, dtype=np.uint8)}


@pytest.fixture
def here(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "here")


@pytest.fixture
def there(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "there")


def contents(store: LocalStore) -> dict[str, bytes]:
    return {stored.name: store.read(stored.name) for stored in store.list() if stored.name != "fence"}


def test_the_copy_is_the_same_checkpoint(here: LocalStore, there: LocalStore) -> None:
    saved = save(here, TREE, step=7, epoch=2, lineage={"run": "r"})
    copied = copy_checkpoint(here, there)
    assert copied is not None
    assert (copied.step, copied.epoch, copied.digest) == (7, 2, saved.digest)
    assert copied.sent_bytes == copied.size_bytes
    verify(there, copied.name)
    assert contents(there) == contents(here)


def test_a_copy_that_is_there_already_costs_nothing(here: LocalStore, there: LocalStore) -> None:
    save(here, TREE, step=1, epoch=0)
    copy_checkpoint(here, there)
    again = copy_checkpoint(here, there)
    assert again is not None
    assert again.sent_bytes == 0


def test_what_a_later_checkpoint_shares_is_not_sent_again(here: LocalStore, there: LocalStore) -> None:
    save(here, TREE, step=1, epoch=0)
    copy_checkpoint(here, there)
    restored = restore(here)
    assert restored is not None
    from wattline.checkpoint.saving import Former

    former = Former(restored.digest, restored.table)
    save(here, {**TREE, "more": np.arange(100)}, step=2, epoch=0, former=former)
    copied = copy_checkpoint(here, there)
    assert copied is not None
    assert copied.sent_bytes < 1000 < copied.size_bytes
    verify(there, "step-00000002.e0")


def test_a_damaged_newest_is_not_spread(here: LocalStore, there: LocalStore) -> None:
    save(here, TREE, step=1, epoch=0)
    save(here, {"w": TREE["w"][::-1]}, step=2, epoch=0)
    alter(packs(here, "step-00000002.e0")[0], 5)
    copied = copy_checkpoint(here, there)
    assert copied is not None
    assert copied.step == 1
    here.delete("checkpoints/step-00000001.e0")
    with pytest.raises(NothingUsableError):
        copy_checkpoint(here, there)


def test_there_may_be_nothing_to_copy(here: LocalStore, there: LocalStore, tmp_path: Path) -> None:
    assert copy_checkpoint(here, there) is None
    assert not (tmp_path / "there").exists()


def test_a_late_replica_does_not_slip_under_a_newer_attempt(here: LocalStore, there: LocalStore) -> None:
    save(here, TREE, step=9, epoch=3)
    fence(there, 4)
    with pytest.raises(StaleEpochError):
        copy_checkpoint(here, there)
    assert list_checkpoints(there) == ()


def test_progress_is_told_in_bytes(here: LocalStore, there: LocalStore) -> None:
    save(here, TREE, step=1, epoch=0)
    told: list[tuple[int, int]] = []
    copied = copy_checkpoint(here, there, progress=lambda arrived, whole: told.append((arrived, whole)))
    assert copied is not None
    assert told[-1] == (copied.size_bytes, copied.size_bytes)
    assert [arrived for arrived, _ in told] == sorted(arrived for arrived, _ in told)


def test_training_may_prune_the_source_while_it_is_being_copied(here: LocalStore, there: LocalStore) -> None:
    save(here, TREE, step=1, epoch=0)
    later = {"w": TREE["w"][::-1].copy()}

    def overtake(arrived: int, whole: int) -> None:
        if not any(entry.step == 2 for entry in list_checkpoints(here)):
            save(here, later, step=2, epoch=0, keep=1)

    copied = copy_checkpoint(here, there, streams=1, progress=overtake)
    assert copied is not None
    assert copied.step == 2
    restored = restore(there)
    assert restored is not None
    assert np.array_equal(restored.tree["w"], later["w"])


def test_after_a_cut_only_what_had_not_arrived_is_sent_again(here: LocalStore, there: LocalStore) -> None:
    save(here, TREE, step=1, epoch=0)

    def cut(arrived: int, whole: int) -> None:
        if arrived > whole / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_checkpoint(here, there, streams=1, progress=cut)
    assert list_checkpoints(there) == ()
    assert not there.list()
    copied = copy_checkpoint(here, there)
    assert copied is not None
    assert copied.sent_bytes <= copied.size_bytes / 2
    verify(there, copied.name)


def test_coverage_is_full_only_when_every_checkpoint_is_there_with_all_its_packs(
    here: LocalStore, there: LocalStore
) -> None:
    save(here, {"w": TREE["w"][:1000]}, step=1, epoch=0)
    save(here, TREE, step=2, epoch=0)
    found = coverage(here, there)
    assert (found.complete, found.missing) == ((), ("step-00000002.e0", "step-00000001.e0"))
    assert found.missing_bytes >= TREE["w"].nbytes
    assert not found.is_full
    assert [copied.step for copied in replicate(here, there)] == [2, 1]
    assert coverage(here, there).is_full
    packs(there, "step-00000001.e0")[0].unlink()
    assert coverage(here, there).missing == ("step-00000001.e0",)


def test_a_manifest_without_its_packs_is_never_published(here: LocalStore, there: LocalStore) -> None:
    save(here, TREE, step=1, epoch=0)
    packs(here, "step-00000001.e0")[0].unlink()
    with pytest.raises(CheckpointError):
        copy_checkpoint(here, there, name="step-00000001.e0")
    assert list_checkpoints(there) == ()


def test_pruning_the_far_end_leaves_what_the_rest_needs(here: LocalStore, there: LocalStore) -> None:
    for step in (1, 2, 3):
        save(here, {"w": TREE["w"] + np.uint8(step)}, step=step, epoch=0)
        copy_checkpoint(here, there)
        prune(there, Keep(last=2))
    assert [entry.step for entry in list_checkpoints(there)] == [3, 2]
    for entry in list_checkpoints(there):
        verify(there, entry.name)
