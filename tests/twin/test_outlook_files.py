"""What a file says of the hours ahead: every hour that it has, and no hour that it has not."""

from __future__ import annotations

from pathlib import Path

import pytest

from building import a_facility, a_site
from wattline.errors import WattlineError
from wattline.facility import Facility
from wattline.state import OutlookHour
from wattline.twin.outlook_files import FiledOutlooker, read_outlook, stamp_of

HOUR = 3600.0
NOON = 1_700_000_000 // 3600 * HOUR  # 2023-11-14T22:00Z


def a_file(folder: Path, text: str, name: str = "outlook.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


TABLE = "hour,price,carbon\n2023-11-14T22:00Z,0.2,300\n2023-11-14T23:00Z,-0.05,\n2023-11-15T01:00Z,,90\n"


def test_holes_stay_holes_and_a_price_may_be_negative(tmp_path: Path) -> None:
    first = int(NOON // HOUR)
    assert read_outlook(a_file(tmp_path, TABLE)) == {
        first: OutlookHour(300.0, 0.2),
        first + 1: OutlookHour(None, -0.05),
        first + 3: OutlookHour(90.0, None),
    }


def test_json_says_the_same_and_times_may_be_of_any_zone(tmp_path: Path) -> None:
    text = (
        '[{"hour": "2023-11-14T23:00+01:00", "price": 0.2, "carbon": 300},'
        ' {"hour": "2023-11-14T23:00Z", "price": -0.05, "carbon": null},'
        ' {"hour": "2023-11-15T01:00Z", "carbon": 90}]'
    )
    assert read_outlook(a_file(tmp_path, text)) == read_outlook(a_file(tmp_path, TABLE, "same.csv"))


def test_of_a_folder_what_a_later_name_says_counts(tmp_path: Path) -> None:
    a_file(tmp_path, TABLE, "2023-11-14.csv")
    a_file(tmp_path, "hour,price\n2023-11-14T23:00Z,0.07\n", "2023-11-15.csv")
    a_file(tmp_path, "not for us", "README")
    found = read_outlook(tmp_path)
    assert found[int(NOON // HOUR) + 1] == OutlookHour(None, 0.07)
    assert found[int(NOON // HOUR)] == OutlookHour(300.0, 0.2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,price\n", "1:1: the columns are others"),
        ("hour,price\nsoon,0.2\n", "2:1: this is not a time"),
        ("hour,price\n2023-11-14T22:00Z,cheap\n", "2:1: price: this is not a number"),
        ("hour,carbon\n2023-11-14T22:00Z,-3\n", "2:1: carbon: the number is out of range"),
        ("hour,price\n2023-11-14T22:00Z,1\n2023-11-14T22:30Z,2\n", "3:1: this hour has a value already"),
        ("hour,price\n", "no hour has a value"),
        ("[1]", "this is no list of hours"),
        ("[{", "this is not JSON"),
        ("", "the columns are others"),
    ],
)
def test_a_file_that_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(WattlineError) as caught:
        read_outlook(a_file(tmp_path, text))
    assert said in str(caught.value)


def test_a_file_that_was_replaced_has_another_stamp(tmp_path: Path) -> None:
    path = a_file(tmp_path, TABLE)
    before = stamp_of(path)
    assert stamp_of(path) == before
    a_file(tmp_path, TABLE + "2023-11-15T02:00Z,1,1\n")
    assert stamp_of(path) != before
    assert stamp_of(tmp_path / "nothing.csv") == ()


def two_sites() -> Facility:
    import dataclasses

    site = dataclasses.replace(a_site("zurich"), outlook_file="zurich.csv")
    return a_facility(site, a_site("oslo", usd_per_kwh=0.05))


def test_a_site_without_a_file_is_as_its_document_says_for_as_long_as_the_others_are_known(
    tmp_path: Path,
) -> None:
    outlooker = FiledOutlooker(two_sites())
    assert outlooker.expected(NOON) == {"zurich": [], "oslo": []}
    outlooker.hours["zurich"] = read_outlook(a_file(tmp_path, TABLE))
    expected = outlooker.expected(NOON)
    assert expected["oslo"] == [OutlookHour(100.0, 0.05)] * 4
    assert expected["zurich"][2] == OutlookHour(None, None)
    assert [hour.usd_per_kwh for hour in outlooker.expected(NOON + HOUR)["zurich"]] == [-0.05, None, None]
    assert outlooker.expected(NOON + 9 * HOUR) == {"zurich": [], "oslo": []}
