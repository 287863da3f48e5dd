"""What did a phase leave behind?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wattline.errors import RefusedError
from wattline.release import capture_outputs, materialise_outputs, read_outputs
from wattline.store import ObjectStore


def test_results_come_back_at_another_site(tmp_path: Path, objects: ObjectStore) -> None:
    (tmp_path / "out" / "checkpoints").mkdir(parents=True)
    (tmp_path / "out" / "model.bin").write_bytes(bytes(range(256)))
    (tmp_path / "out" / "checkpoints" / "last.bin").write_bytes(b"w")
    (tmp_path / "out" / "latest").symlink_to("checkpoints/last.bin")
    outputs = capture_outputs(tmp_path / "out", objects)
    assert [file.path for file in outputs.files] == ["checkpoints/last.bin", "model.bin"]
    assert outputs.left_out == ()
    materialise_outputs(outputs.digest, objects, tmp_path / "site")
    assert (tmp_path / "site" / "model.bin").read_bytes() == bytes(range(256))
    assert (tmp_path / "site" / "latest").read_bytes() == b"w"


def test_what_cannot_be_kept_is_named_and_the_rest_is_kept(tmp_path: Path, objects: ObjectStore) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "secret").write_text("not a result")
    (out / "model.bin").write_bytes(b"w")
    (out / "stolen").symlink_to(tmp_path / "secret")
    (out / "folder").symlink_to(tmp_path)
    (out / "bad\nname").write_text("x")
    os.mkfifo(out / "pipe")
    outputs = capture_outputs(out, objects)
    assert [file.path for file in outputs.files] == ["model.bin"]
    assert outputs.links == ()
    assert len(outputs.left_out) == 4
    assert read_outputs(outputs.digest, objects).files == outputs.files


def test_a_phase_that_left_nothing_has_empty_outputs(tmp_path: Path, objects: ObjectStore) -> None:
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    empty.mkdir()
    assert capture_outputs(missing, objects) == capture_outputs(empty, objects)


def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path, objects: ObjectStore) -> None:
    (tmp_path / "out").symlink_to("/etc")
    with pytest.raises(RefusedError, match="has become a link"):
        capture_outputs(tmp_path / "out", objects)
