from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline.checks.preflight.asking import Asking, Check
from wattline.checks.preflight.data.drift import check_schema, describe, find_drift
from wattline.checks.preflight.data.profile import profile, worth_recording
from wattline.errors import WattlineError
from wattline.spec import Pipeline, Policy, parse_document
from wattline.spec.data_profile import DataProfile, Sampled, write_profile

Editing = Callable[[str], str]


def table(rows: int = 100) -> str:
    lines = [
        f"{20 + number % 40},{number / 10:.1f},{('north', 'south')[number % 2]},2024-01-{number % 28 + 1:02d}"
        for number in range(rows)
    ]
    return "\n".join(["age,income,region,joined", *lines]) + "\n"


def checks(folder: Path, name: str = "x.csv") -> list[Check]:
    pipeline = Pipeline.model_validate(
        {
            "pipeline": "p",
            "model": "m",
            "owner": "o",
            "project": "q",
            "phases": {"train": {"run": "true"}},
            "data": [{"name": "x", "path": name, "schema": "x.schema.yaml"}],
        }
    )
    return list(check_schema(Asking(pipeline=pipeline, policy=Policy.model_validate({}), folder=folder)))


def record(folder: Path, name: str = "x.csv", edit: Editing = str) -> None:
    found = worth_recording(profile(folder / name))
    (folder / "x.schema.yaml").write_text(edit(write_profile(found, name)))


def drifted(folder: Path, before: str, after: str | bytes, edit: Editing = str) -> list[Check]:
    """What is said of a table that was recorded and then replaced."""
    (folder / "x.csv").write_text(before)
    record(folder, edit=edit)
    (folder / "x.csv").write_bytes(after if isinstance(after, bytes) else after.encode())
    return checks(folder)


def test_what_is_as_recorded_passes_in_one_line(tmp_path: Path) -> None:
    (only,) = drifted(tmp_path, table(), table())
    assert (only.outcome, only.message) == ("pass", "csv, 100 rows in 4 columns; as recorded")


def test_within_the_tolerances_nothing_is_said(tmp_path: Path) -> None:
    after = table(105).replace("\n20,", "\n18,").replace("\n21,2.1,", "\n,2.1,", 1)
    assert [check.outcome for check in drifted(tmp_path, table(), after)] == ["pass"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("\n25,", "\nold,"), "column age: type recorded integer, found text"),
        (lambda text: text.replace("\n25,", "\n25.5,"), "column age: type recorded integer, found number"),
        (
            lambda text: text.replace("\n25,", "\n250,"),
            "column age: range recorded 20 to 59, found 20 to 250; 10 % beyond either end is allowed",
        ),
        (
            lambda text: text.replace("north", ""),
            "column region: nulls recorded 0 %, found 50 %; 2 points more are allowed",
        ),
        (
            lambda text: text.replace("north", "nord", 3),
            "column region: recorded categories north, south, found also nord",
        ),
        (
            lambda text: text.replace("age,", "years,", 1),
            "column age: recorded, not found",
        ),
        (
            lambda text: "".join(text.splitlines(keepends=True)[:51]),
            "rows: recorded 100, found 50 (-50 %); 20 % either way is allowed",
        ),
        (
            lambda text: text.partition("\n")[2],
            "header: recorded names of columns in the first line, found values",
        ),
        (lambda text: text.replace(",", ";"), "delimiter: recorded comma, found semicolon"),
        (lambda text: "", "recorded 100 rows, found none: it is empty"),
        (lambda text: text.replace("north", "nörd", 1).encode("latin-1"), "found not utf-8"),
        (lambda text: gzip.compress(text.encode())[:-9], "recorded as csv; now x.csv ends too early"),
        (lambda text: b"\0" * 99, "recorded as csv; now x.csv holds NUL bytes"),
        (
            lambda text: text.replace("\n2", "\n2,2", 20),
            "malformed rows: recorded 0 %, found 20 %",
        ),
    ],
)
def test_a_drift_is_told_with_what_was_recorded_and_what_is_there(
    tmp_path: Path, change: Callable[[str], str | bytes], message: str
) -> None:
    found = drifted(tmp_path, table(), change(table()))
    failed = [check for check in found if check.outcome == "fail"]
    assert message in "\n".join(check.message for check in failed)
    assert all(check.fix and check.file == "x.csv" for check in failed)


def test_a_column_that_was_renamed_is_told_with_the_new_name(tmp_path: Path) -> None:
    found = drifted(tmp_path, table(), table().replace("income", "incomes", 1))
    assert [(check.outcome, check.message) for check in found] == [
        ("fail", "column income: recorded, not found; there is 'incomes'"),
        ("warn", "columns found that were not recorded: incomes"),
    ]


def test_a_header_without_any_recorded_name_is_one_drift(tmp_path: Path) -> None:
    before = "kind,place\n" + "cat,north\ndog,south\n" * 20
    (only,) = drifted(tmp_path, before, before.partition("\n")[2])
    assert "none of the 2 recorded columns is there; the first line says cat, north" in only.message


def test_columns_in_another_order_are_worth_a_look(tmp_path: Path) -> None:
    (only,) = drifted(tmp_path, "a,b\n1,2\n3,4\n", "b,a\n2,1\n4,3\n")
    assert (only.outcome, "another order" in only.message) == ("warn", True)


def test_a_category_without_a_row_is_worth_a_look(tmp_path: Path) -> None:
    (only,) = drifted(tmp_path, table(), table().replace("north", "south"))
    assert only.outcome == "warn"
    assert only.message == "column region: recorded categories without a row: north"


@pytest.mark.parametrize(
    ("change", "allowance"),
    [
        (("north", "nord"), ("new_categories: false", "new_categories: true")),
        (("\n25,", "\n99,"), ("range: 10%", "range: 150%")),
        (("\n25,", "\n,"), ("nulls: 2%", "nulls: 5%")),
        (("\n25,", "\n99,"), ("  max: 59\n", "  max: 59\n  tolerance: {range: 150%}\n")),
    ],
)
def test_what_people_allow_in_the_profile_does_not_fail(
    tmp_path: Path, change: tuple[str, str], allowance: tuple[str, str]
) -> None:
    after = table().replace(*change)
    assert any(check.outcome == "fail" for check in drifted(tmp_path, table(), after))
    allowed = drifted(tmp_path, table(), after, edit=lambda text: text.replace(*allowance))
    assert not any(check.outcome == "fail" for check in allowed)


def test_the_fix_names_the_tolerance_that_would_allow_it(tmp_path: Path) -> None:
    (only,) = drifted(tmp_path, table(), table().replace("\n25,", "\n98,"))
    assert "allow it in x.schema.yaml: `range: 101%`" in only.fix
    edited = drifted(
        tmp_path,
        table(),
        table().replace("\n25,", "\n98,"),
        edit=lambda text: text.replace("range: 10%", "range: 101%"),
    )
    assert [check.outcome for check in edited] == ["pass"]


def test_what_a_sample_may_have_missed_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(table())
    whole = worth_recording(profile(tmp_path / "x.csv"))
    recorded = whole.model_copy(update={"sampled": Sampled(bytes=10, of=100)})
    (tmp_path / "x.csv").write_text(table().replace("\n25,", "\n99,").replace("south", "sud", 1))
    found = profile(tmp_path / "x.csv")
    assert {drift.outcome for drift in find_drift(recorded, found)} == {"warn"}
    assert {drift.outcome for drift in find_drift(whole, found)} == {"fail"}


def test_text_that_lost_its_encoding_on_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("plain words\n" * 50)
    record(tmp_path, "x.txt")
    (tmp_path / "x.txt").write_text("plain w\ufffdrds\n" * 50)
    (only,) = checks(tmp_path, "x.txt")
    assert (only.outcome, "found 50" in only.message) == ("fail", True)


def test_many_drifts_are_not_all_told(tmp_path: Path) -> None:
    header = ",".join(f"c{number}" for number in range(60))
    before, after = f"{header}\n{','.join('1' * 60)}\n", f"{header}\n{','.join('x' * 60)}\n"
    found = drifted(tmp_path, before, after)
    assert len(found) == 21
    assert "more than 20 differences" in found[-1].message


def test_a_profile_that_is_missing_or_wrong_fails(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(table())
    (missing,) = checks(tmp_path)
    assert (missing.outcome, missing.file) == ("fail", "wattline.yaml")
    assert "`wattline data pin x.csv`" in missing.fix
    (tmp_path / "x.schema.yaml").write_text("form: csv\nrows: many\n")
    (wrong,) = checks(tmp_path)
    assert (wrong.outcome, wrong.file, wrong.line) == ("fail", "x.schema.yaml", 2)


def test_what_cannot_be_looked_at_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.schema.yaml").write_text("form: parquet\nrows: 5\n")
    (gone,) = checks(tmp_path, "x.parquet")
    assert (gone.outcome, gone.message) == ("skip", "x.parquet is not there, so it has no profile")
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (unread,) = checks(tmp_path, "x.parquet")
    assert unread.outcome == "skip"
    assert "pyarrow" in unread.message


def test_a_profile_in_a_line_says_what_was_sampled() -> None:
    found = DataProfile(form="text", rows=5000, files=3, sampled=Sampled(bytes=1000, of=9_000_000))
    assert describe(found) == "text, about 5,000 lines of 3 files, sampled 1 kB of 9 MB"


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(["x.csv", "x.jsonl", "x.txt", "x.tsv"]),
    raw=st.binary(max_size=300) | st.text('ab1,;\n"{}: .-', max_size=200).map(str.encode),
    repeats=st.sampled_from([1, 50]),
    most_bytes=st.sampled_from([64, 1 << 20]),
)
def test_no_data_has_drifted_from_its_own_profile(
    name: str, raw: bytes, repeats: int, most_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(raw * repeats)
        try:
            found = profile(Path(folder) / name, most_bytes)
        except WattlineError:
            return
    text = write_profile(worth_recording(found), name)
    recorded = parse_document(text.encode(), DataProfile, file="x.schema.yaml")
    assert list(find_drift(recorded, found)) == []
