from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from twin.planning import an_option, halls, jobs, settings
from wattline.errors import UsageError
from wattline.facility import Facility
from wattline.spec import PlanOption
from wattline.twin.plan import AS_IT_IS, Progress, choose, choose_horizon, run_plan
from wattline.twin.plan_plot import write_plan_plot
from wattline.twin.plan_report import OptionReport, PlanReport
from wattline.twin.report import Report
from wattline.twin.traces import Trace, TraceJob

HOUR = 3600.0
HORIZON = 10 * HOUR
RACKS = an_option(
    "racks",
    {"capital": 876_600, "lifetime_years": 1},  # 100 USD an hour
    rack="north/r1",
    copies=3,
    grow=["loop", "power"],
)


def plan(
    *options: PlanOption,
    facility: Facility | None = None,
    made: list[TraceJob] | None = None,
    seeds: int = 2,
    horizon_seconds: float = HORIZON,
) -> PlanReport:
    facility = facility or halls()
    return run_plan(
        "test",
        settings(facility, jobs() if made is None else made),
        [choose(facility, option) for option in options],
        seeds=range(seeds),
        horizon_seconds=horizon_seconds,
        tell=lambda progress: None,
    )


@pytest.fixture(scope="module")
def report() -> PlanReport:
    uplink = an_option("uplink", link="ns", bandwidth_factor=2)
    return plan(RACKS, uplink, seeds=3)


@pytest.fixture(scope="module")
def racks(report: PlanReport) -> OptionReport:
    return report.options[0]


@pytest.fixture(scope="module")
def uplink(report: PlanReport) -> OptionReport:
    return report.options[1]


def test_more_racks_get_more_done_where_jobs_wait(report: PlanReport, racks: OptionReport) -> None:
    gain = racks.figures["useful_gpu_hours"]
    assert gain.gains
    assert gain.base == report.base["useful_gpu_hours"]
    assert gain.low is not None
    assert 50 < gain.low < (gain.difference or 0) <= 24 * 10  # no more than the new GPUs have hours
    assert (racks.figures["jobs_unfinished"].difference or 0) < 0
    assert (report.gpus, racks.gpus) == (24, 48)


def test_dollars_are_energy_and_the_cost_over_the_horizon(report: PlanReport, racks: OptionReport) -> None:
    assert racks.option_usd == pytest.approx(1000.0)
    usd, energy_usd = racks.figures["usd"], racks.figures["energy_usd"]
    assert usd.base == energy_usd.base == report.base["energy_usd"]
    assert usd.option == pytest.approx((energy_usd.option or 0) + 1000.0)
    energy = report.base["energy_kwh"] or 0
    assert 0.10 * energy < (energy_usd.base or 0) < 0.20 * energy  # between the two tariffs


def test_ratios_follow_from_what_they_are_made_of(racks: OptionReport) -> None:
    gain, usd, energy = (racks.figures[name] for name in ("useful_gpu_hours", "usd", "energy_kwh"))
    assert racks.gained_gpu_hours_per_usd == pytest.approx((gain.difference or 0) / (usd.difference or 1))
    assert racks.gained_gpu_hours_per_kwh == pytest.approx((gain.difference or 0) / (energy.difference or 1))
    per_kwh = racks.figures["useful_gpu_hours_per_kwh"].option
    assert per_kwh == pytest.approx((gain.option or 0) / (energy.option or 1), rel=0.05)


def test_what_is_clear_is_said_in_words(report: PlanReport, racks: OptionReport) -> None:
    assert racks.says.startswith("buys ")
    assert "useful GPU-hours in 10 h, each for" in racks.says
    assert report.recommendation.startswith("first racks: ")
    assert report.recommendation.endswith("USD for each useful GPU-hour more")


def test_an_uplink_that_nothing_goes_over_changes_nothing(uplink: OptionReport) -> None:
    gain = uplink.figures["useful_gpu_hours"]
    assert (gain.difference, gain.is_clear) == (0.0, False)
    assert uplink.says == "changes nothing, with any of 3 seeds"
    assert uplink.gained_gpu_hours_per_usd is None


def test_without_a_cost_dollars_are_energy_alone_and_that_is_said(uplink: OptionReport) -> None:
    assert uplink.option_usd is None
    assert "option_usd: no cost was given, so dollars are energy alone" in uplink.not_estimated
    assert uplink.figures["usd"].option == uplink.figures["energy_usd"].option


def test_pue_is_not_re_estimated_where_the_weather_is_not_known(
    racks: OptionReport, uplink: OptionReport
) -> None:
    assert "pue: not re-estimated, as the weather of north is not known" in racks.not_estimated
    assert (racks.figures["pue"].option, racks.figures["pue"].difference) == (None, None)
    assert uplink.figures["pue"].option is not None
    assert not any(each.startswith("pue") for each in uplink.not_estimated)


def test_warmer_water_is_not_said_to_change_nothing_where_nobody_knows_the_weather(tmp_path: Path) -> None:
    warmer = an_option("warmer", {"per_year": 0}, loop="north/cdu", warmer_by="3K")
    told = plan(warmer, facility=halls(tmp_path), made=jobs(20), seeds=2, horizon_seconds=3 * HOUR)
    (option,) = told.options
    assert option.says == "gets the same done, with any of 2 seeds; what cooling north takes is not known"
    assert told.recommendation == "no option buys useful GPU-hours"


def test_warmer_water_saves_energy_where_the_weather_is_known(tmp_path: Path) -> None:
    """24 °C outside: dry coolers alone cannot hold 30 °C, and can hold 33 °C."""
    warmer = an_option("warmer", {"per_year": 0}, loop="north/cdu", warmer_by="3K")
    facility = halls(tmp_path, outside_celsius=24.0)
    told = plan(warmer, facility=facility, made=jobs(20), seeds=4, horizon_seconds=3 * HOUR)
    (option,) = told.options
    assert option.figures["pue"].loses
    assert option.figures["energy_kwh"].loses
    assert not any(each.startswith("pue") for each in option.not_estimated)
    assert "saves" in option.says
    assert told.recommendation.startswith("first warmer: costs no more")


def test_idle_racks_on_a_full_loop_take_from_work_and_that_is_said() -> None:
    full = {"loop": "north/cdu", "capacity_factor": 0.6}
    more = {"rack": "north/r1", "copies": 3}
    changes = ([full], [full, more], [full, {**more, "grow": ["loop", "power"]}])
    options = [
        PlanOption.model_validate({"name": f"o{at}", "changes": each}) for at, each in enumerate(changes)
    ]
    told = plan(*options, seeds=3)
    as_it_is, crowded, grown = (option.figures["useful_gpu_hours"].option or 0.0 for option in told.options)
    assert crowded < as_it_is < grown
    assert told.options[1].says.endswith("carry for work; grow builds that out")
    assert "idle" not in told.options[0].says + told.options[2].says


def test_one_seed_claims_nothing() -> None:
    told = plan(RACKS, seeds=1, made=jobs(30), horizon_seconds=4 * HOUR)
    (option,) = told.options
    assert option.figures["useful_gpu_hours"].is_clear is None
    assert "nothing says whether another agrees" in option.says
    assert told.recommendation == "cannot tell apart with 1 seed"
    assert "interval: one seed has none" in told.not_estimated


def test_base_and_options_meet_the_same_jobs_for_the_same_time() -> None:
    seen: list[tuple[str, int, Report]] = []
    facility = halls()

    def keep(progress: Progress) -> None:
        if isinstance(progress.news, Report):
            seen.append((progress.choice, progress.seed, progress.news))

    run_plan(
        "test",
        settings(facility, jobs(30)),
        [choose(facility, RACKS)],
        seeds=(0, 1),
        horizon_seconds=3 * HOUR,
        tell=keep,
    )
    assert [(choice, seed) for choice, seed, _ in seen] == [
        (AS_IT_IS, 0),
        ("racks", 0),
        (AS_IT_IS, 1),
        ("racks", 1),
    ]
    assert {report.simulated_hours for _, _, report in seen} == {3.0}
    assert len({report.jobs.submitted for _, _, report in seen}) == 1


def test_a_hall_with_nothing_left_to_do_draws_until_the_horizon() -> None:
    """Otherwise an option that is done sooner would look as if its idle machines were free."""
    made = jobs(4)
    first, second, third = (
        plan(made=made, seeds=1, horizon_seconds=hours * HOUR).base["energy_kwh"] or 0
        for hours in (10, 20, 30)
    )
    assert second - first == pytest.approx(third - second)
    assert second - first > 10 * 24 * 0.068  # its GPUs alone draw that


def test_the_same_question_has_the_same_answer() -> None:
    first, second = (plan(RACKS, made=jobs(20), horizon_seconds=2 * HOUR) for _ in range(2))
    assert first == second


def test_the_horizon_is_while_jobs_arrive_unless_it_is_said() -> None:
    trace = Trace(name="t", kind="philly", jobs=jobs(5), refused_by_rule={})
    assert choose_horizon(trace, None) == 4 * 600.0
    assert choose_horizon(trace, 50.0) == 50.0
    at_once = Trace(name="t", kind="philly", jobs=jobs(5, every_seconds=0.0), refused_by_rule={})
    with pytest.raises(UsageError, match="all jobs arrive at once"):
        choose_horizon(at_once, None)


def test_the_title_of_a_picture_is_what_comes_first_and_the_day_stands_below(
    report: PlanReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, str] = {}

    def keep(_: object, **words: str) -> bytes:
        told.update(words)
        return b""

    monkeypatch.setattr("wattline.twin.plan_plot.draw_framed", keep)
    two = msgspec.structs.replace(report, recommendation="first a: costs no more; then b: 2 USD for each")
    write_plan_plot(two, tmp_path)
    assert told["finding"] == "First a: costs no more"
    assert told["shows"].startswith("differences over 10 h from 2024-01-01, 3 seeds")


def test_a_picture_shows_what_each_option_buys(report: PlanReport, tmp_path: Path) -> None:
    path = write_plan_plot(report, tmp_path / "new")
    assert path.name == "plan.png"
    png = path.read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(png[16:20], "big") == 1200
