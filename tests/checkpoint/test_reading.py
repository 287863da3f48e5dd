"""Is this checkpoint whole, and what does it hold?"""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkpoint.damage import alter, manifest, packs, reseal
from wattline.checkpoint import (
    CheckpointError,
    LocalStore,
    NewerSchemaError,
    NothingUsableError,
    restore,
    save,
    verify,
)
from wattline.checkpoint.chunks import MAX_CHAIN


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


def test_nothing_is_restored_from_nothing(store: LocalStore) -> None:
    assert restore(store) is None


def test_a_damaged_newest_is_reported_and_the_one_before_is_used(store: LocalStore) -> None:
    for step in (1, 2, 3):
        save(store, {"w": np.full(4, step)}, step=step, epoch=0)
    alter(packs(store, "step-00000003.e0")[0], 5)
    packs(store, "step-00000002.e0")[0].unlink()
    restored = restore(store)
    assert restored is not None
    assert restored.step == 1
    assert [one.name for one in restored.rejected] == ["step-00000003.e0", "step-00000002.e0"]
    assert "is altered at byte 0" in restored.rejected[0].why
    assert "there is no such object" in restored.rejected[1].why


def test_one_of_them_is_restored_by_its_name(store: LocalStore) -> None:
    for step in (1, 2):
        save(store, step, step=step, epoch=0)
    restored = restore(store, "step-00000001.e0")
    assert restored is not None
    assert restored.tree == 1
    with pytest.raises(CheckpointError, match="there is no such object"):
        restore(store, "step-00000009.e0")


def test_when_all_are_damaged_it_says_so_rather_than_nothing(store: LocalStore) -> None:
    name = save(store, {"w": np.ones(4)}, step=1, epoch=0).name
    alter(packs(store, name)[0], 0)
    with pytest.raises(NothingUsableError, match="none of 1 checkpoints can be used") as caught:
        restore(store)
    assert caught.value.rejected[0].name == name


def test_a_later_epoch_goes_before_a_higher_step(store: LocalStore) -> None:
    save(store, "abandoned", step=9, epoch=1)
    save(store, "current", step=5, epoch=2)
    restored = restore(store)
    assert restored is not None
    assert restored.tree == "current"


def test_a_newer_schema_stops_the_restore_instead_of_falling_back(store: LocalStore) -> None:
    save(store, "old", step=1, epoch=0)
    reseal(manifest(store, save(store, "new", step=2, epoch=0).name), schema=3)
    with pytest.raises(NewerSchemaError, match=r"step-00000002\.e0: the manifest has schema 3"):
        restore(store)


def test_a_renamed_checkpoint_is_not_taken_for_another_step(store: LocalStore) -> None:
    name = save(store, {}, step=1, epoch=0).name
    manifest(store, name).rename(manifest(store, "step-00000009.e0"))
    with pytest.raises(CheckpointError, match="the manifest is of step 1, epoch 0"):
        verify(store, "step-00000009.e0")


def forged(store: LocalStore, change: Any) -> None:
    """A checkpoint of one tensor of eight bytes, whose manifest is changed and sealed again."""
    name = save(store, np.arange(8, dtype=np.uint8), step=1, epoch=0).name
    fields = json.loads(manifest(store, name).read_bytes())
    ((digest, chunk),) = fields["table"]["chunks"].items()
    change(fields, digest, chunk)
    reseal(manifest(store, name), table=fields["table"], tree=fields["tree"])


def cycle(fields: Any, digest: str, chunk: list[Any]) -> None:
    other = "e" * 64
    fields["table"]["chunks"] = {digest: [*chunk, other], other: [*chunk, digest]}


def long_chain(fields: Any, digest: str, chunk: list[Any]) -> None:
    names = [digest, *(f"{number:064x}" for number in range(MAX_CHAIN + 2))]
    chunks = {name: [*chunk, base] for name, base in pairwise(names)}
    fields["table"]["chunks"] = chunks | {names[-1]: chunk}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda f, d, c: f["tree"]["tensor"].update(shape=[16]), "has chunks of 8 bytes"),
        (lambda f, d, c: f["tree"]["tensor"].update(shape=[0, 2**62, 2**62], chunks=[]), "cannot be held"),
        (lambda f, d, c: f["tree"]["tensor"].update(shape=[2**33], chunks=[d] * 2**18), "chunks of"),
        (lambda f, d, c: f["tree"]["tensor"].update(chunks=["f" * 64]), "not in the table"),
        (lambda f, d, c: c.__setitem__(1, 4), "does not lie in a pack"),
        (lambda f, d, c: c.__setitem__(1, -1), "does not lie in a pack"),
        (lambda f, d, c: c.__setitem__(0, 1), "does not lie in a pack"),
        (lambda f, d, c: c.__setitem__(3, 2**40), "does not lie in a pack"),
        (lambda f, d, c: c.__setitem__(5, "pickle"), "unknown codec"),
        (lambda f, d, c: c.append("f" * 64), "not in the table"),
        (
            lambda f, d, c: f["table"]["packs"][0].__setitem__(0, "packs/../a"),
            "a pack is described",
        ),
        (lambda f, d, c: f["table"]["packs"][0].__setitem__(0, "/etc/passwd"), "a pack is described"),
        (lambda f, d, c: f["table"]["packs"][0].__setitem__(0, "fence"), "a pack is described"),
        (lambda f, d, c: f["table"]["packs"].append(f["table"]["packs"][0]), "named twice"),
        (lambda f, d, c: f.__setitem__("table", None), "wrong fields"),
        (cycle, "a chain of more than"),
        (long_chain, "a chain of more than"),
    ],
)
def test_a_forged_manifest_can_neither_make_its_reader_allocate_nor_lead_it_astray(
    store: LocalStore, change: Any, why: str
) -> None:
    forged(store, change)
    with pytest.raises(NothingUsableError, match=why):
        restore(store)


def test_a_size_that_no_machine_holds_is_refused_before_it_is_begun(store: LocalStore) -> None:
    def repeat(fields: Any, digest: str, chunk: list[Any]) -> None:
        one = {"tensor": {"dtype": "|u1", "shape": [2**50], "chunks": [digest]}}
        fields["tree"] = one

    forged(store, repeat)
    with pytest.raises(NothingUsableError, match="this machine has"):
        restore(store)


@pytest.mark.parametrize("which", [manifest, lambda store, name: packs(store, name)[0]])
def test_only_regular_files_are_read(store: LocalStore, tmp_path: Path, which: Any) -> None:
    name = save(store, np.zeros(8), step=1, epoch=0).name
    path = which(store, name)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="cannot be read"):
        verify(store, name)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match="is not a regular file"):
        verify(store, name)
