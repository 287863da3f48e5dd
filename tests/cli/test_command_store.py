from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cli.looking import COMMAND, PIPELINE, TRAIN, Wattline
from postgres import PASSWORD, PostgresServer
from wattline.store import open_store


def test_a_backup_of_a_real_run_comes_back_elsewhere_with_all_it_had(
    wattline: Wattline, ran: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = wattline("status", ran, "-o", "json").json
    backed = wattline("store", "backup", tmp_path / "b", "--objects", "-o", "json")
    assert backed.code == 0, backed.err
    told = backed.json
    assert told["journal"]["records"] == told["rows"]["journal"] > 0
    assert told["objects"] > 0
    assert set(told) == {
        "file",
        "taken_at",
        "size_bytes",
        "schema_version",
        "journal",
        "rows",
        "objects",
        "sha256",
    }
    monkeypatch.setenv("WATTLINE_HOME", str(tmp_path / "elsewhere"))
    restored = wattline("store", "restore", tmp_path / "b")
    assert restored.code == 0, restored.err
    assert "the journal is whole" in restored.out
    after = wattline("status", ran, "-o", "json").json
    assert after["phases"] == before["phases"]
    assert wattline("explain", f"{ran}/train").code == 0


def test_what_is_there_is_left_alone_unless_forced(
    wattline: Wattline, ran: str, home: Path, tmp_path: Path
) -> None:
    assert wattline("store", "backup", tmp_path / "b").code == 0
    again = wattline("store", "backup", tmp_path / "b")
    assert again.code == 1
    assert "--force" in again.err
    assert wattline("store", "backup", tmp_path / "b", "--force").code == 0
    refused = wattline("store", "restore", tmp_path / "b")
    assert refused.code == 1
    assert "is not empty" in refused.err
    assert wattline("store", "restore", tmp_path / "b", "--force").code == 0
    assert wattline("status", ran).code == 0


def test_where_nothing_was_run_there_is_nothing_to_back_up(
    wattline: Wattline, home: Path, tmp_path: Path
) -> None:
    told = wattline("store", "backup", tmp_path / "b")
    assert told.code == 3
    assert "nothing was ever run" in told.err
    assert not home.exists()
    assert wattline("store", "restore", tmp_path / "missing").code == 3
    assert wattline("store", "restore", tmp_path / "b", "--into", "mysql://db/x").code == 2


@pytest.mark.needs("initdb")
def test_a_team_moves_from_sqlite_to_postgresql_and_goes_on(
    wattline: Wattline,
    ran: str,
    home: Path,
    tmp_path: Path,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = postgres.url(postgres.new_database())
    assert wattline("store", "backup", tmp_path / "b").code == 0
    moved = wattline("store", "restore", tmp_path / "b", "--into", url, "-o", "json")
    assert moved.code == 0, moved.err
    assert moved.json["into"].startswith("postgresql://127.0.0.1:")
    assert PASSWORD not in moved.out + moved.err
    monkeypatch.setenv("WATTLINE_DATABASE", url)
    (home / "wattline.db").unlink()
    assert wattline("status", ran).code == 0
    team = tmp_path / "team"
    (team / "data").mkdir(parents=True)
    (team / "data" / "words.txt").write_text("one two three\n")
    (team / "train.py").write_text(TRAIN)
    (team / "wattline.yaml").write_text(PIPELINE)
    done = subprocess.run(
        [*COMMAND, "run"], cwd=team, env=os.environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not (home / "wattline.db").exists()
    with open_store(url) as store:
        assert store.journal.verify() > moved.json["journal"]["records"]
    weighed = wattline("policy", "diff", "default", "-o", "json").json
    assert weighed["jobs_played"] > 0, weighed["doubts"]
    assert wattline("report").code == 0


def test_a_backup_without_objects_says_what_it_lacks_where_it_is_made_and_where_it_comes_back(
    wattline: Wattline, ran: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        f"stay in {home / 'objects'}: --objects takes them" in wattline("store", "backup", tmp_path / "b").out
    )
    assert "copy those" not in wattline("store", "restore", tmp_path / "b", "--force").out
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setenv("WATTLINE_HOME", str(elsewhere))
    told = wattline("store", "restore", tmp_path / "b").out
    assert f"has no objects: copy those of its server into {elsewhere / 'objects'} before use" in told
