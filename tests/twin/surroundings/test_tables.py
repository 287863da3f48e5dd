"""Price and carbon files: the columns that are meant, gaps that are counted, faults with their line."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared_data import shared_data
from wattline.errors import DocumentError, UnavailableError
from wattline.twin.surroundings.series import HourlySeries
from wattline.twin.surroundings.tables import read_carbon, read_price

PRICE = "Datetime (UTC),Datetime (Local),Price (USD/MWh)\n2024-01-01 00:00:00+00:00,x,80\n"
JANUARY = datetime(2024, 1, 1, tzinfo=UTC).timestamp()


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "series.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("zone", "least", "mean"),
    [("DE-LU", -0.1446, 0.0846), ("US-CAL-CISO", -0.0315, 0.0407), ("US-TEX-ERCO", -0.0028, 0.0281)],
)
def test_a_year_of_wholesale_prices_is_in_usd_per_kwh_and_goes_below_zero(
    zone: str, least: float, mean: float
) -> None:
    series, missing = read_price(shared_data(f"price/usd_mwh_2024_{zone}.csv.gz"))
    values = [series.at(JANUARY + 3600 * hour) for hour in range(8784)]
    assert missing == 0
    assert min(values) == pytest.approx(least, abs=1e-4)
    assert sum(values) / 8784 == pytest.approx(mean, abs=1e-4)


def test_summer_time_neither_skips_nor_repeats_a_price() -> None:
    series, _ = read_price(shared_data("price/usd_mwh_2024_DE-LU.csv.gz"))
    first = datetime(2024, 3, 31, 0, tzinfo=UTC).timestamp()
    rows = gzip.decompress(shared_data("price/usd_mwh_2024_DE-LU.csv.gz").read_bytes()).decode().splitlines()
    begin = next(number for number, row in enumerate(rows) if row.startswith("2024-03-31 00:00:00+00:00"))
    told = [float(row.rpartition(",")[2]) / 1000.0 for row in rows[begin : begin + 4]]
    assert [series.at(first + 3600 * hour) for hour in range(4)] == pytest.approx(told)


@pytest.mark.parametrize(
    ("zone", "first"), [("DE-LU", 177.74), ("US-CAL-CISO", 340.52), ("US-TEX-ERCO", 401.96)]
)
def test_carbon_is_read_over_the_life_cycle(zone: str, first: float) -> None:
    series, missing = read_carbon(shared_data(f"carbon/emaps_2024_{zone}.csv.gz"))
    assert (series.at(JANUARY), missing) == (first, 0)


def test_a_sample_of_a_few_days_is_read_and_says_how_much_is_missing() -> None:
    series, missing = read_carbon(shared_data("carbon/carbonscaler_sample.csv.gz"))
    assert series.at(datetime(2020, 1, 1, 1, tzinfo=UTC).timestamp()) == 363.37
    assert missing == 8784 - 24 - 60


@pytest.mark.parametrize(
    ("read", "column", "price"),
    [
        (read_price, "Price (USD/MWh)", 0.08),
        (read_price, "usd_per_mwh", 0.08),
        (read_price, "usd_per_kwh", 80.0),
        (read_carbon, "grams_co2_per_kwh", 80.0),
        (read_carbon, "Carbon intensity gCO₂eq/kWh (Life cycle)", 80.0),
    ],
)
def test_a_column_says_its_unit(
    tmp_path: Path, read: Callable[[Path], tuple[HourlySeries, int]], column: str, price: float
) -> None:
    series, _ = read(written(tmp_path, f"time,{column}\n2024-01-01T00:00Z,80\n"))
    assert series.at(JANUARY) == pytest.approx(price)


def test_life_cycle_wins_over_direct_wherever_it_stands(tmp_path: Path) -> None:
    header = "Carbon Intensity gCO₂eq/kWh (direct),Carbon Intensity gCO₂eq/kWh (LCA),Datetime (UTC)"
    series, _ = read_carbon(written(tmp_path, f"{header}\n100,140,2024-01-01\n"))
    assert series.at(JANUARY) == 140.0


@pytest.mark.parametrize("gap", ["", "NaN", "null", " "])
def test_an_hour_that_says_nothing_is_a_gap(tmp_path: Path, gap: str) -> None:
    text = PRICE + f"2024-01-01 01:00:00+00:00,x,{gap}\n2024-01-01 02:00:00+00:00,x,-5\n"
    series, missing = read_price(written(tmp_path, text))
    assert [series.at(JANUARY + 3600 * hour) for hour in range(3)] == [0.08, 0.08, -0.005]
    assert missing == 8784 - 24 - 2


def test_rows_may_come_in_any_order_and_in_any_zone(tmp_path: Path) -> None:
    text = "time,usd_per_kwh\n2024-01-01T03:00+01:00,3\n2024-01-01T01:00Z,2\n\n2024-01-01T00:00,1\n"
    series, _ = read_price(written(tmp_path, text))
    assert [series.at(JANUARY + 3600 * hour) for hour in range(3)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "the file is empty"),
        ("time,watts\n", 1, "no column has a name that is known"),
        ("when,usd_per_kwh\n", 1, "no column has a name that is known"),
        (PRICE + "2024-01-01 01:00:00,x,cheap\n", 3, "Price (USD/MWh): this is not a number, got 'cheap'"),
        (PRICE + "2024-01-01 01:00:00,x,inf\n", 3, "the number is out of range"),
        (PRICE + "2024-01-01 01:00:00,x,1e9\n", 3, "the number is out of range"),
        (PRICE + "yesterday,x,1\n", 3, "this is not a time, got 'yesterday'"),
        (PRICE + "2024-01-01 01:00:00\n", 3, "the row is too short"),
        (PRICE + "2024-01-01 00:00:00,x,1\n", 3, "this hour has a value already"),
        (PRICE + "2023-01-01 00:00:00,x,1\n", 3, "of another year"),
        (PRICE + "\n" * 10_000 + "2024-01-01 01:00:00,x,1\n", 10_001, "too many rows"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_price(written(tmp_path, text))
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(tmp_path / "series.csv"), line)
    assert said in str(problem)


def test_a_negative_intensity_is_an_error_though_a_negative_price_is_not(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="out of range"):
        read_carbon(written(tmp_path, "time,grams_co2_per_kwh\n2024-01-01,-1\n"))


def test_a_gzip_file_is_known_by_its_content(tmp_path: Path) -> None:
    series, _ = read_price(written(tmp_path, gzip.compress(PRICE.encode())))
    assert series.at(JANUARY) == 0.08


@pytest.mark.parametrize("cut", [3, 20, 40])
def test_a_broken_gzip_file_is_an_error(tmp_path: Path, cut: int) -> None:
    with pytest.raises(DocumentError, match="the gzip file is broken"):
        read_price(written(tmp_path, gzip.compress(PRICE.encode())[:cut]))


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="the file is too large"):
        read_price(written(tmp_path, gzip.compress(b" " * (17 << 20))))


def test_a_missing_file_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"no\.csv: there is no such series"):
        read_price(tmp_path / "no.csv")
    with pytest.raises(UnavailableError, match="cannot be read"):
        read_price(tmp_path)
