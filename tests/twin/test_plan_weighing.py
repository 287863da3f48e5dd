from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from twin.recording import a_report
from wattline.twin.plan_report import PlanReport
from wattline.twin.plan_weighing import HOURS_PER_YEAR, Tried, weigh_options
from wattline.twin.report import Report, SiteReport


def runs(hours: Sequence[float], usd: float = 100.0, kwh: float = 1000.0) -> list[Report]:
    site = SiteReport(
        energy_kwh=kwh, cost_usd=usd, carbon_kg=1.0, peak_kw=1.0, pue=1.1, tue=1.2, utilisation=0.5
    )
    return [
        a_report(seed=seed, useful_gpu_hours=useful, energy_kwh=kwh, sites={"here": site})
        for seed, useful in enumerate(hours)
    ]


def tried(name: str, reports: Sequence[Report], usd_per_hour: float | None = None) -> Tried:
    per_year = None if usd_per_hour is None else usd_per_hour * HOURS_PER_YEAR
    return Tried(name=name, changes=(), gpus=8, usd_per_year=per_year, stale_pue_sites=(), reports=reports)


def weigh(*options: Tried, hours: Sequence[float] = (1000, 1200, 1100)) -> PlanReport:
    """An hour, so that a cost by the hour is what is spent."""
    return weigh_options("p", runs(hours), options, 3600.0)


def test_the_cheaper_of_two_clear_gains_comes_first() -> None:
    dear, cheap = runs([1101, 1299, 1200]), runs([1051, 1249, 1150])
    told = weigh(tried("dear", dear, 1000.0), tried("cheap", cheap, 100.0))
    assert told.recommendation == "first cheap: 2 USD for each useful GPU-hour more"


def test_two_that_gain_alike_for_their_dollars_are_not_ranked() -> None:
    one, other = runs([1090, 1310, 1200]), runs([1110, 1290, 1201])
    told = weigh(tried("one", one, 100.0), tried("other", other, 100.0))
    assert told.recommendation == "other and one cannot be told apart by dollars with 3 seeds"


def test_a_gain_that_seeds_do_not_agree_on_is_none() -> None:
    told = weigh(tried("maybe", runs([900, 1500, 1100]), 1.0))
    (option,) = told.options
    assert option.says == told.recommendation == "cannot tell apart with 3 seeds"
    assert option.gained_gpu_hours_per_usd is None


def test_a_gain_without_a_cost_is_not_recommended() -> None:
    told = weigh(tried("unpriced", runs([1101, 1299, 1200])))
    assert told.options[0].says.startswith("buys 100 ± ")
    assert told.recommendation == (
        "unpriced: more useful GPU-hours, but no cost was given to weigh them against"
    )


def test_more_for_no_more_dollars_comes_before_all_else() -> None:
    told = weigh(tried("priced", runs([1201, 1399, 1300]), 1.0), tried("free", runs([1101, 1299, 1200]), 0.0))
    assert told.recommendation.startswith("first free: costs no more")


def test_a_loss_by_racks_that_crowd_others_out_says_so() -> None:
    worse = msgspec.structs.replace(tried("worse", runs([899, 1101, 1000])), crowding="idle, they take 9 kW")
    assert weigh(worse).options[0].says.endswith("; idle, they take 9 kW")
    better = msgspec.structs.replace(worse, reports=runs([1101, 1299, 1200]))
    assert "idle" not in weigh(better).options[0].says


def test_a_clear_loss_is_called_one() -> None:
    told = weigh(tried("worse", runs([899, 1101, 1000]), 10.0))
    assert told.options[0].says.startswith("loses 100 ± ")
    assert told.recommendation == "no option buys useful GPU-hours"


@pytest.mark.parametrize("usd", [0.0, -5.0])
def test_there_is_no_ratio_to_nothing_or_to_what_the_grid_pays(usd: float) -> None:
    told = weigh_options("p", runs([1000, 1100], usd=usd), [], 3600.0)
    assert told.base["useful_gpu_hours_per_usd"] is None
    assert "base.useful_gpu_hours_per_usd: some run does not know it" in told.not_estimated
