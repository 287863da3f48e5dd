from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline.checks.preflight.data import sampling
from wattline.checks.preflight.data.profile import profile, worth_recording
from wattline.checks.preflight.data.sampling import UnknownFormError
from wattline.checks.preflight.data.tables import NotInstalledError
from wattline.errors import UnavailableError, WattlineError
from wattline.spec import parse_document
from wattline.spec.data_profile import Column, DataProfile, write_profile

NAMES = ["x.csv", "x.tsv", "x.jsonl", "x.txt", "x", "x.csv.gz", "x.json", "x.parquet"]


def profiled(
    folder: Path, name: str, content: str | bytes, most_bytes: int = sampling.MOST_BYTES
) -> DataProfile:
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(raw)
    return profile(folder / name, most_bytes)


def columns(found: DataProfile) -> dict[str, Column]:
    return {column.name: column for column in found.columns}


def test_every_column_of_a_table_has_its_type_nulls_range_and_categories(tmp_path: Path) -> None:
    rows = ["id,share,seen,at,kind,note,gone"]
    for number in range(40):
        note = f"note {number}" if number % 2 else ""
        kind = ("cat", "dog")[number % 2]
        rows.append(f"{number},{number / 8},true,2024-01-{number % 28 + 1:02d}T10:00:00Z,{kind},{note},NA")
    found = profiled(tmp_path, "x.csv", "\n".join(rows))
    assert (found.form, found.encoding, found.delimiter, found.header, found.rows) == (
        "csv", "utf-8", "comma", True, 40
    )  # fmt: skip
    types = {name: column.type for name, column in columns(found).items()}
    assert types == {
        "id": "integer", "share": "number", "seen": "boolean", "at": "date-time",
        "kind": "text", "note": "text", "gone": "empty",
    }  # fmt: skip
    by_name = columns(found)
    assert (by_name["share"].min, by_name["share"].max) == (0, 39 / 8)
    assert by_name["kind"].categories == ("cat", "dog")
    assert (by_name["note"].nulls, by_name["note"].longest) == (0.5, 7)
    assert by_name["gone"].nulls == 1.0


@pytest.mark.parametrize(
    ("delimiter", "word"), [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "bar")]
)
def test_the_delimiter_is_sniffed(tmp_path: Path, delimiter: str, word: str) -> None:
    lines = [delimiter.join(("a", "b", "c")), *(delimiter.join(("1", '"x, y; z"', "2.5")) for _ in range(5))]
    found = profiled(tmp_path, "x.csv", "\n".join(lines))
    assert found.delimiter == word
    assert [column.type for column in found.columns] == ["integer", "text", "number"]


def test_json_lines_bring_their_types(tmp_path: Path) -> None:
    lines = [
        {"id": 1, "text": "a", "tags": ["x"], "either": 1, "none": None},
        {"id": 2, "text": "b", "tags": [], "either": "one"},
        {"id": 3.5, "text": "2024-01-01", "either": True},
    ]
    found = profiled(tmp_path, "x.jsonl", "\n".join(map(json.dumps, lines)) + "\n\nnot json\n")
    assert {name: column.type for name, column in columns(found).items()} == {
        "id": "number", "text": "text", "tags": "nested", "either": "mixed", "none": "empty"
    }  # fmt: skip
    assert (found.rows, found.malformed) == (4, 0.25)
    assert columns(found)["tags"].nulls == pytest.approx(1 / 3, abs=1e-3)


def test_text_has_lines_and_their_lengths(tmp_path: Path) -> None:
    found = profiled(tmp_path, "x.txt", "one\r\n\nthree four five six\x07\n")
    assert found.rows == 3
    assert found.lines is not None
    assert (found.lines.longest, found.lines.unreadable, found.lines.blank) == (20, 1, 0.3333)


@pytest.mark.parametrize(
    ("raw", "encoding"),
    [
        ("a,b\né,1\n".encode(), "utf-8"),
        ("a,b\né,1\n".encode("utf-8-sig"), "utf-8 with BOM"),
        ("a,b\né,1\n".encode("latin-1"), "not utf-8"),
        ("a,b\né,1\n".encode("utf-16"), "utf-16"),
    ],
)
def test_the_encoding_is_told_and_the_columns_are_the_same(tmp_path: Path, raw: bytes, encoding: str) -> None:
    found = profiled(tmp_path, "x.csv", raw)
    assert found.encoding == encoding
    assert [column.name for column in found.columns] == ["a", "b"]


def test_gzip_is_looked_into(tmp_path: Path) -> None:
    found = profiled(tmp_path, "x.csv.gz", gzip.compress(b"a,b\n1,2\n3,4\n", mtime=0))
    assert (found.form, found.rows, found.sampled) == ("csv", 2, None)


def test_gzip_of_many_members_is_read_to_its_end(tmp_path: Path) -> None:
    members = [gzip.compress(b"a,b\n1,2\n", mtime=0), *[gzip.compress(b"3,4\n" * 5000)] * 9]
    assert profiled(tmp_path, "x.csv.gz", b"".join(members)).rows == 45_001


def test_a_table_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    found = profiled(tmp_path, "x.csv", "1,cat\n2,dog\n")
    assert (found.header, found.rows) == (False, 2)
    assert [column.name for column in found.columns] == ["column 1", "column 2"]


def test_names_of_columns_are_plain_and_unlike_each_other(tmp_path: Path) -> None:
    found = profiled(tmp_path, "x.csv", "a,a,,\u202eb\nw,x,y,z\n")
    assert [column.name for column in found.columns] == ["a", "a (2)", "column 3", "\\u202eb"]


def test_values_that_few_rows_share_are_not_recorded_as_categories(tmp_path: Path) -> None:
    text = "kind,name\n" + "".join(f"{'ab'[n % 2]},name{n}\n" for n in range(20))
    recorded = columns(worth_recording(profiled(tmp_path, "x.csv", text)))
    assert recorded["kind"].categories == ("a", "b")
    assert recorded["name"].categories is None


def test_a_folder_is_one_table_and_what_else_lies_there_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    (folder / "deep").mkdir(parents=True)
    for number in range(3):
        (folder / "deep" / f"{number}.csv").write_text(f"a,b\n{number},x\n")
    (folder / "README.md").write_text("words " * 1000)
    (folder / ".hidden").write_text("x")
    found = profile(folder)
    assert (found.form, found.files, found.left_out, found.rows) == ("csv", 3, 1, 3)
    assert columns(found)["a"].max == 2


def test_of_many_files_some_are_read_and_the_rest_estimated(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number:03}.jsonl").write_text('{"a": 1}\n' * 10)
    found = profile(tmp_path)
    assert (found.files, found.rows) == (100, 1000)
    assert found.sampled is not None
    assert (found.sampled.bytes, found.sampled.of) == (16 * 90, 9000)


@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x.jsonl", "x.csv.gz"])
def test_what_is_too_large_is_sampled_and_its_rows_estimated(tmp_path: Path, name: str) -> None:
    line = {"x.txt": "{} words\n", "x.jsonl": '{{"number": {}}}\n'}.get(name, "{},x\n")
    text = ("number,letter\n" if "csv" in name else "") + "".join(map(line.format, range(1, 50_001)))
    raw = gzip.compress(text.encode()) if name.endswith(".gz") else text
    found = profiled(tmp_path, name, raw, most_bytes=64 << 10)
    assert found.sampled is not None
    assert found.sampled.bytes <= 64 << 10
    assert found.rows == pytest.approx(50_000, rel=0.2)
    if name == "x.csv":
        assert columns(found)["number"].max == 50_000  # the end of the file is among what is read


def test_cells_over_many_lines_are_not_cut_by_a_sample(tmp_path: Path) -> None:
    text = "id,text\n" + "".join(f'{n},"one\n,,two"\n' for n in range(5000))
    found = profiled(tmp_path, "x.csv", text, most_bytes=16 << 10)
    assert [column.type for column in found.columns] == ["integer", "text"]
    assert found.malformed == 0


@pytest.mark.parametrize(
    ("name", "raw", "complaint"),
    [
        ("x.csv.gz", gzip.compress(b"a,b\n1,2\n" * 100, mtime=0)[:-12], "cut off"),
        ("x.csv.gz", b"a,b\n1,2\n", "named as gzip and is none"),
        ("x.csv.gz", b"\x1f\x8b\x08\x00junk and more junk", "broken gzip"),
        ("x.csv", b"a,b\n1,\x00\n", "NUL bytes"),
        ("x.bin", bytes(range(1, 32)) * 10, "neither text nor a table"),
        ("x.csv", b",".join(b"%d" % n for n in range(100_000)), "100,000 columns"),
        ("x.jsonl", json.dumps({str(n): n for n in range(5000)}).encode(), "1,000 columns"),
        ("x.jsonl", b"plain words\n" * 9, "9 of 9 rows are not a JSON object"),
        ("x.txt", b"x" * (5 << 20), "a line of more than 2.1 MB"),
    ],
)
def test_what_cannot_be_looked_at_is_told_with_its_reason(
    tmp_path: Path, name: str, raw: bytes, complaint: str
) -> None:
    with pytest.raises(UnavailableError, match=complaint):
        profiled(tmp_path, name, raw)


def test_an_endless_line_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "x.csv").open("wb") as file:
        file.write(b"a" * (1 << 20))
        file.truncate(1 << 30)
    with pytest.raises(UnknownFormError, match="NUL bytes"):
        profile(tmp_path / "x.csv")


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.csv.gz", "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"1,2\n" * (1 << 18))
    found = profile(tmp_path / "x.csv.gz")
    assert found.sampled is not None
    assert found.sampled.bytes <= sampling.MOST_BYTES


def test_parquet_without_its_library_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(NotInstalledError, match="pyarrow"):
        profiled(tmp_path, "x.parquet", b"PAR1")


def test_an_empty_folder_has_no_profile(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="holds no file"):
        profile(tmp_path)


def written_and_read(found: DataProfile) -> DataProfile:
    return parse_document(write_profile(found, "x").encode(), DataProfile, file="x.schema.yaml")


cells: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["no", "1e5", "0o7", "~", "<<", "=", "2024-01-01", "null", "x: y", "- a", "#"])
    | st.text(max_size=8)
)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(NAMES), raw=st.binary(max_size=400) | st.text(max_size=200).map(str.encode))
def test_any_bytes_have_a_profile_that_reads_back_or_a_reason(name: str, raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = profiled(Path(folder), name, raw)
        except WattlineError:
            return
    assert written_and_read(found) == found


@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=5), cells, max_size=5), max_size=30))
def test_any_table_has_a_profile_that_reads_back(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = profiled(Path(folder), "x.jsonl", "\n".join(map(json.dumps, rows)))
    assert written_and_read(found) == found
    assert found.rows == len(rows)
