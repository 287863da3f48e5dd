"""The benchmark of shifting in short: the bars of its first row are met, and the bound is one."""

from __future__ import annotations

import pytest
from bench.carbon import SHORT_DAYS, Figures, read_year, weigh

from shared_data import shared_data


@pytest.fixture(scope="module")
def short() -> Figures:
    shared_data("carbon/emaps_2024_US-CAL-CISO.csv.gz")
    return weigh([read_year("CISO")], 0.3, seed=0, days=SHORT_DAYS, switch_seconds=70.0)


def test_no_deadline_is_missed_and_most_of_what_could_be_saved_is(short: Figures) -> None:
    assert short.missed == 0
    assert short.share >= 0.8


def test_it_is_better_than_a_threshold_and_worse_than_who_knows_all(short: Figures) -> None:
    assert short.threshold is not None
    assert short.threshold < short.saved <= short.bound
