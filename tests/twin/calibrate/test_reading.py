from __future__ import annotations

import gzip
import json
import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.errors import DocumentError, UnavailableError, WattlineError
from wattline.twin.calibrate import Telemetry, read_telemetry, telemetry
from wattline.twin.calibrate.reading import COLUMNS

HEAD = ",".join(COLUMNS)
READING = st.tuples(
    st.floats(0, 2e9),
    st.sampled_from(["a/gpu0", "b", "c d"]),
    st.sampled_from(["gpu_watts", "gpu_celsius"]),
    st.floats(-1e6, 1e6),
)


def read(text: str | bytes, tmp_path: Path) -> Telemetry:
    path = tmp_path / "telemetry"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_telemetry(path)


def values(found: Telemetry) -> dict[tuple[str, str], list[tuple[float, float]]]:
    return {
        key: list(zip(series.at.tolist(), series.values.tolist(), strict=True))
        for key, series in found.series.items()
    }


@given(content=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: f"{HEAD}\n{text}".encode()))
def test_any_bytes_are_telemetry_or_refused_with_a_sentence(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with suppress(WattlineError):
        found = read(content, tmp_path_factory.getbasetemp())
        assert sum(len(series) for series in found.series.values()) + found.repeated == found.readings
        assert found.bad >= len(found.bad_lines)


@given(readings=st.lists(READING, min_size=1, max_size=30, unique_by=lambda one: one[:3]), seed=st.integers())
def test_csv_json_and_gzip_in_any_order_say_the_same(
    readings: list[tuple[float, str, str, float]], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    csv = "\n".join(
        [HEAD, *(f"{at!r},{name},{quantity},{value!r}" for at, name, quantity, value in readings)]
    )
    random.Random(seed).shuffle(readings)
    lines = "\n".join(json.dumps(dict(zip(COLUMNS, reading, strict=True))) for reading in readings)
    first = values(read(csv, folder))
    assert values(read(gzip.compress(csv.encode()), folder)) == first
    assert values(read(lines, folder)) == first


def test_times_are_unix_seconds_or_iso_with_utc_unless_said(tmp_path: Path) -> None:
    times = ["1704067200", "2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2024-01-01 00:00:00"]
    found = read("\n".join([HEAD, *(f"{at},{n},gpu_watts,1" for n, at in enumerate(times))]), tmp_path)
    assert {series.at[0] for series in found.series.values()} == {1704067200.0}


def test_columns_go_by_their_names_and_others_are_left_alone(tmp_path: Path) -> None:
    found = read('\ufeffValue,source,"at",subject,quantity\n1.5,x,7,"a,b",gpu_watts\n', tmp_path)
    assert values(found) == {("a,b", "gpu_watts"): [(7.0, 1.5)]}


def test_bad_lines_are_counted_with_their_numbers_and_reasons(tmp_path: Path) -> None:
    lines = [
        HEAD,
        "1,a,gpu_watts,5",
        "1,a,gpu_watts",
        "1,a,gpu_watts,hot",
        "yesterday,a,gpu_watts,5",
        "1,a,gpu_watts,nan",
        "1704067200000,a,gpu_watts,5",
        "",
        f"1,{'a' * 5000},gpu_watts,5",
        "2,a,gpu_watts,6",
    ]
    found = read("\n".join(lines), tmp_path)
    assert found.readings == 2
    assert [(bad.line, bad.message.split(",")[0]) for bad in found.bad_lines] == [
        (3, "the line has 3 columns"),
        (4, "the value is a number"),
        (5, "the time is Unix seconds or ISO 8601"),
        (6, "time and value are finite numbers"),
        (7, "time is in seconds since 1970"),
        (9, "the line is longer than 4"),
    ]


def test_quantities_that_say_nothing_here_are_counted_and_left(tmp_path: Path) -> None:
    found = read(f"{HEAD}\n1,a,cap_watts,5\n1,a,supply_watts,5\n2,a,cap_watts,5\n", tmp_path)
    assert found.unused == {"cap_watts": 2, "supply_watts": 1}
    assert (found.readings, found.bad) == (0, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"time,gpu,watts\n1,2,3\n", "missing: at, subject, quantity, value"),
        (b"at,subject,quantity,value\n1,y,gpu_watts,z\n", ":2:1: the value is a number"),
        (b'{"at": 1}\n', ":1:1: a line is an object with at"),
        (b'{"at": [1], "subject": "a", "quantity": "gpu_watts", "value": 1}', "the time is Unix seconds"),
        (b'{"at": 1, "subject": 2, "quantity": "gpu_watts", "value": 1}', "subject and quantity are text"),
        (b'{"at": 1, "subject": "a", "quantity": "gpu_watts", "value": true}', "the value is a number"),
    ],
)
def test_a_file_that_is_not_telemetry_is_a_wrong_document(
    content: bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentError, match=message):
        read(content, tmp_path)


def test_what_cannot_be_read_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no such file"):
        read_telemetry(tmp_path / "nowhere.csv")
    with pytest.raises(UnavailableError, match="this folder has no wattline"):
        read_telemetry(tmp_path)
    whole = gzip.compress(f"{HEAD}\n".encode() + b"1,a,gpu_watts,5\n" * 1000)
    with pytest.raises(UnavailableError, match="gzip stream is broken"):
        read(whole[: len(whole) // 2], tmp_path)


def test_no_more_is_read_than_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "MOST_READINGS", 3)
    with pytest.raises(DocumentError, match="more than 3 readings"):
        read("\n".join([HEAD, *(f"{at},a,gpu_watts,5" for at in range(4))]), tmp_path)
    monkeypatch.setattr(telemetry, "MOST_SERIES", 1)
    with pytest.raises(DocumentError, match="more than 1 meters"):
        read(f"{HEAD}\n1,a,gpu_watts,5\n1,b,gpu_watts,5\n", tmp_path)
