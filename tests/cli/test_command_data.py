from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cli.looking import PIPELINE, Wattline
from wattline.cli.command_data import data_name
from wattline.spec.data_profile import ColumnTolerance, read_profile


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
    fields = f"sha256: {sha256}, schema: data/words.schema.yaml"
    assert written == PIPELINE.replace("words.txt}", f"words.txt, {fields}}}")
    again = wattline("data", "pin", "data/words.txt").out
    assert "pinned already" in again
    assert "profile as recorded in data/words.schema.yaml: text, 1 line" in again


def test_without_a_profile_the_hash_is_written_alone(team: Path, wattline: Wattline) -> None:
    done = wattline("data", "pin", "data/words.txt", "--no-profile", "--output", "json").json
    assert (done["schema"], done["profile"], done["not_profiled"]) == (None, None, None)
    assert "schema" not in (team / "wattline.yaml").read_text()
    assert [path.name for path in (team / "data").iterdir()] == ["words.txt"]


def test_a_tolerance_that_people_edited_stays_when_data_is_pinned_again(
    team: Path, wattline: Wattline
) -> None:
    table, schema = team / "data" / "people.csv", team / "data" / "people.schema.yaml"
    table.write_text("age,name\n" + "".join(f"{age},p{age}\n" for age in range(20, 60)))
    first = wattline("data", "pin", "data/people.csv", "--output", "json").json
    assert first["profile"] == {
        "form": "csv", "files": 1, "rows": 40, "columns": 2, "sampled": None, "changed": True
    }  # fmt: skip
    edited = schema.read_text().replace("rows: 20%", "rows: 55%")
    edited = edited.replace("  max: 59\n", "  max: 59\n  tolerance: {range: 33%}\n")
    schema.write_text(edited)
    table.write_text("age,name\n" + "".join(f"{age},p{age}\n" for age in range(10, 30)))
    assert wattline("data", "pin", "data/people.csv").code == 0
    again = read_profile(schema)
    assert again.rows == 20
    assert again.tolerance.rows == 0.55
    age = again.columns[0]
    assert (age.name, age.min, age.tolerance) == ("age", 10, ColumnTolerance(range=0.33))


def test_what_has_no_form_is_pinned_and_the_reason_for_no_profile_told(
    team: Path, wattline: Wattline
) -> None:
    (team / "data" / "weights.bin").write_bytes(bytes(range(256)))
    done = wattline("data", "pin", "data/weights.bin", "--output", "json").json
    assert done["changed"] is True
    assert done["schema"] is None
    assert "NUL bytes" in done["not_profiled"]
    assert "not profiled: weights.bin holds NUL" in wattline("data", "pin", "data/weights.bin").out


def test_a_large_file_is_sampled_and_that_is_said(team: Path, wattline: Wattline) -> None:
    (team / "data" / "words.txt").write_text("some words in a line\n" * 300_000)
    done = wattline("data", "pin", "data/words.txt").out
    assert "sampled 2.1 MB of 6.3 MB" in done
    assert "about 300,0" in done


def test_two_files_of_one_stem_have_profiles_of_their_own(team: Path, wattline: Wattline) -> None:
    (team / "data" / "words.csv").write_text("a,b\n1,2\n")
    assert wattline("data", "pin", "data/words.txt", "--output", "json").json["schema"] == (
        "data/words.schema.yaml"
    )
    assert wattline("data", "pin", "data/words.csv", "--output", "json").json["schema"] == (
        "data/words.csv.schema.yaml"
    )


def test_a_file_that_is_no_profile_is_not_written_over(team: Path, wattline: Wattline) -> None:
    theirs = team / "data" / "words.schema.yaml"
    theirs.write_text("mine: true\n")
    before = (team / "wattline.yaml").read_text()
    refused = wattline("data", "pin", "data/words.txt")
    assert refused.code == 1
    assert "--no-profile" in refused.err
    assert (theirs.read_text(), (team / "wattline.yaml").read_text()) == ("mine: true\n", before)


def test_a_profile_inside_the_folder_it_is_of_is_refused(team: Path, wattline: Wattline) -> None:
    inside = PIPELINE.replace("data/words.txt}", "data, schema: data/s.yaml}")
    (team / "wattline.yaml").write_text(inside)
    refused = wattline("data", "pin", "data")
    assert refused.code == 2
    assert "lies inside the data" in refused.err


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
