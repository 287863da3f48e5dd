from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cli.looking import PIPELINE, Wattline
from wattline.cli.command_data import data_name


@pytest.fixture
def team(in_folder: Path) -> Path:
    (in_folder / "data").mkdir()
    (in_folder / "data" / "words.txt").write_text("one two three\n")
    (in_folder / "wattline.yaml").write_text(PIPELINE)
    return in_folder


def test_the_hash_of_a_file_is_written_into_the_pipeline(team: Path, wattline: Wattline) -> None:
    sha256 = hashlib.sha256(b"one two three\n").hexdigest()
    done = wattline("data", "pin", "data/words.txt")
    assert done.code == 0
    written = (team / "wattline.yaml").read_text()
    assert written == PIPELINE.replace("words.txt}", f"words.txt, sha256: {sha256}}}")
    assert "pinned already" in wattline("data", "pin", "data/words.txt").out


def test_a_pipeline_elsewhere_can_be_named(
    team: Path, wattline: Wattline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(team.parent)
    done = wattline(
        "data", "pin", "folder/data", "--pipeline", "folder/wattline.yaml", "--output", "json"
    ).json
    assert (done["name"], done["path"], done["was"], done["changed"]) == ("data", "data", None, True)


def test_the_mode_of_the_file_stays_and_so_does_a_link_to_it(team: Path, wattline: Wattline) -> None:
    real = team / "real.yaml"
    (team / "wattline.yaml").rename(real)
    real.chmod(0o640)
    (team / "wattline.yaml").symlink_to("real.yaml")
    assert wattline("data", "pin", "data/words.txt").code == 0
    assert (team / "wattline.yaml").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in team.iterdir()) == ["data", "real.yaml", "wattline.yaml"]


def test_a_wrong_document_is_left_alone(team: Path, wattline: Wattline) -> None:
    wrong = PIPELINE.replace("owner: ada", "ownr: ada")
    (team / "wattline.yaml").write_text(wrong)
    refused = wattline("data", "pin", "data/words.txt")
    assert refused.code == 2
    assert "did you mean 'owner'?" in refused.err
    assert (team / "wattline.yaml").read_text() == wrong


@pytest.mark.usefixtures("team")
def test_what_cannot_be_pinned_is_told(wattline: Wattline) -> None:
    assert wattline("data", "pin", "data/nothing.txt").code == 3
    outside = wattline("data", "pin", "/etc/passwd")
    assert outside.code == 2
    assert "does not lie below" in outside.err
    assert wattline("data", "pin", ".").code == 2


def test_a_missing_pipeline_is_told(in_folder: Path, wattline: Wattline) -> None:
    (in_folder / "x").touch()
    assert wattline("data", "pin", "x").code == 3


def test_names_are_plain_and_unlike_each_other() -> None:
    assert data_name("data/a b.csv", set()) == "a-b"
    assert data_name("other/x.txt", {"x"}) == "x-2"
    assert data_name("ünï", set()) == "n"
    assert data_name("…", set()) == "data"
