"""`wattline run` on a state folder that cannot be used: it says so, and leaves it as it is."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cli.running import TRAIN, Desk, assert_nothing_is_left, model_of

_FILL = """
    if step == 15 and os.environ.get("WATTLINE_EPOCH") == "1":
        with open("out/big", "wb", buffering=0) as file:
            for size in (1 << 16, 1):
                with contextlib.suppress(OSError):
                    while file.write(b"x" * size):
                        pass
        time.sleep(600)
"""


def test_a_database_of_a_newer_version_is_only_read(desk: Desk) -> None:
    desk.pipeline({"train": "print('trained')"})
    assert desk.run().code == 0
    database = desk.home / "wattline.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("update wattline_schema set version_num = '0099'")
        connection.commit()
    before = hashlib.sha256(database.read_bytes()).digest()
    ran = desk.run()
    assert ran.code == 3
    assert "has schema version 99; this wattline knows versions up to" in ran.err
    assert "upgrade wattline" in ran.err
    assert hashlib.sha256(database.read_bytes()).digest() == before


@pytest.mark.parametrize("content", [b"rubbish\n", b"rubbish " * 4096], ids=["short", "long"])
def test_a_database_that_is_rubbish_is_left_alone(desk: Desk, content: bytes) -> None:
    desk.pipeline({"train": "print('trained')"})
    desk.home.mkdir()
    (desk.home / "wattline.db").write_bytes(content)
    ran = desk.run()
    assert ran.code == 3
    assert f"database {desk.home / 'wattline.db'} is not a SQLite database" in ran.err
    assert (desk.home / "wattline.db").read_bytes() == content


@pytest.mark.parametrize("place", ["/proc/wattline", "a-file/home"])
def test_a_state_folder_that_cannot_be_made_is_named(desk: Desk, place: str) -> None:
    desk.pipeline({"train": "print('trained')"})
    desk.write("a-file", "")
    desk.home = desk.folder / place
    ran = desk.run()
    assert ran.code == 3
    assert f"state folder {desk.home}: cannot be made" in ran.err
    assert "set WATTLINE_HOME" in ran.err


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small-disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only who may mount has a small disk to fill")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_ends_the_run_and_loses_nothing(desk: Desk, small_disk: Path) -> None:
    desk.training(steps=20, seconds=0.1)
    desk.write("train.py", "import contextlib, os\n" + TRAIN.replace("\n    until =", f"{_FILL}    until ="))
    desk.home = small_disk / "home"
    ran = desk.run()
    assert ran.code == 3
    assert "no room left on its disk" in ran.err
    assert "free space on the disk" in ran.err
    assert desk.found("sites/*/checkpoints/*/train/checkpoints/step-*")
    (big,) = desk.home.glob("runs/*/train/1/work/out/big")
    big.unlink()
    again = desk.run("--resume")
    assert (again.code, again.json["status"]) == (0, "succeeded"), again.err
    assert model_of(again.json) == desk.by_hand()
    assert "resumed at step" in again.err
    assert_nothing_is_left(desk)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_state_folder_that_may_not_be_written_is_told(desk: Desk) -> None:
    desk.pipeline({"train": "print('trained')"})
    desk.home.mkdir(mode=0o500)
    ran = desk.run()
    assert ran.code == 3
    assert str(desk.home) in ran.err
