"""Is this checkpoint whole, and what does it hold?"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3

from wattline.checkpoint import CheckpointError, NewerSchemaError, NothingUsableError, restore, save, verify


def alter(file: Path, position: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[position] ^= 0xFF
    file.write_bytes(raw)


def reseal(path: Path, **changes: Any) -> None:
    """Forge a manifest: the hash is no signature, so whoever can write the file can seal it again."""
    fields = json.loads((path / "manifest.json").read_bytes())
    del fields["blake3"]
    body = json.dumps({**fields, **changes}, separators=(",", ":"))[:-1].encode()
    digest = blake3(body).hexdigest().encode()
    (path / "manifest.json").write_bytes(body + b',"blake3":"' + digest + b'"}\n')


def test_nothing_is_restored_from_nothing(tmp_path: Path) -> None:
    assert restore(tmp_path) is None
    assert restore(tmp_path / "missing") is None


def test_a_damaged_newest_is_reported_and_the_one_before_is_used(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save(tmp_path, {"w": np.full(4, step)}, step=step, epoch=0)
    alter(tmp_path / "step-00000003.e0" / "tensors.bin", 5)
    (tmp_path / "step-00000002.e0" / "manifest.json").unlink()
    restored = restore(tmp_path)
    assert restored is not None
    assert restored.step == 1
    assert [one.path.name for one in restored.rejected] == ["step-00000003.e0", "step-00000002.e0"]
    assert "the tensor at byte 0 is altered" in restored.rejected[0].why
    assert "No such file" in restored.rejected[1].why


def test_when_all_are_damaged_it_says_so_rather_than_nothing(tmp_path: Path) -> None:
    path = save(tmp_path, {"w": np.ones(4)}, step=1, epoch=0).path
    alter(path / "tensors.bin", 0)
    with pytest.raises(NothingUsableError, match="none of 1 checkpoints can be used") as caught:
        restore(tmp_path)
    assert caught.value.rejected[0].path == path


def test_a_later_epoch_goes_before_a_higher_step(tmp_path: Path) -> None:
    save(tmp_path, "abandoned", step=9, epoch=1)
    save(tmp_path, "current", step=5, epoch=2)
    restored = restore(tmp_path)
    assert restored is not None
    assert restored.tree == "current"


def test_a_newer_schema_stops_the_restore_instead_of_falling_back(tmp_path: Path) -> None:
    save(tmp_path, "old", step=1, epoch=0)
    reseal(save(tmp_path, "new", step=2, epoch=0).path, schema=2)
    with pytest.raises(NewerSchemaError, match=r"step-00000002\.e0: the manifest has schema 2"):
        restore(tmp_path)


def test_a_renamed_checkpoint_is_not_taken_for_another_step(tmp_path: Path) -> None:
    path = save(tmp_path, {}, step=1, epoch=0).path
    with pytest.raises(CheckpointError, match="the manifest is of step 1, epoch 0"):
        verify(path.rename(tmp_path / "step-00000009.e0"))


def tensor(shape: list[int], nbytes: int, *, offset: int = 0, data: bytes = b"") -> dict[str, Any]:
    reference = {"dtype": "|u1", "shape": shape, "offset": offset, "nbytes": nbytes}
    return {"tensor": {**reference, "blake3": blake3(data).hexdigest()}}


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        (tensor([2**40], 2**40), "does not lie at 0"),
        ([tensor([4], 4, data=b"\0" * 4), tensor([4], 4, data=b"\0" * 4)], "does not lie at 4"),
        (tensor([4], 4, offset=4, data=b"\0" * 4), "does not lie at 0"),
        (tensor([4], 4, data=b"\0" * 4), "4 bytes belong to no tensor"),
        (None, "8 bytes belong to no tensor"),
        (tensor([0, 2**62, 2**62], 0), "cannot be held"),
    ],
    ids=["larger than the file", "overlapping", "out of order", "too short", "none", "impossible shape"],
)
def test_a_forged_manifest_cannot_make_its_reader_allocate_or_skip(
    tmp_path: Path, tree: Any, why: str
) -> None:
    path = save(tmp_path, np.zeros(8, dtype=np.uint8), step=1, epoch=0).path
    reseal(path, tree=tree)
    with pytest.raises(NothingUsableError, match=why):
        restore(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "tensors.bin"])
def test_only_regular_files_are_read(tmp_path: Path, name: str) -> None:
    path = save(tmp_path / "a", np.zeros(8), step=1, epoch=0).path
    (path / name).rename(tmp_path / name)
    (path / name).symlink_to(tmp_path / name)
    with pytest.raises(CheckpointError, match="cannot be read"):
        verify(path)
    (path / name).unlink()
    os.mkfifo(path / name)
    with pytest.raises(CheckpointError, match="is not a regular file"):
        verify(path)
