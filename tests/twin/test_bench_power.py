"""The benchmark of shared power in short: every bar that is asked for is met, nothing is ever exceeded."""

from __future__ import annotations

import pytest
from bench.power_sharing import Row, rows

from shared_data import shared_data


@pytest.fixture(scope="module")
def short() -> list[Row]:
    shared_data("gpu_power/zeus_summary_power_v100.csv")
    return list(rows(short=True))


def test_every_bar_is_met(short: list[Row]) -> None:
    assert len(short) == 7
    assert [row.name for row in short if not row.is_met] == []


def test_no_row_is_better_than_the_programme_that_knows_all(short: list[Row]) -> None:
    for row in short:
        if row.name.startswith("4 racks in"):
            assert float(row.note.split(" %")[0]) <= 100.0
        elif row.name.endswith("% rigid"):
            assert float(row.note.split(" of")[0]) >= 1.0
