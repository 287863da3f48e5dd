from __future__ import annotations

from twin.recording import a_layout, a_report
from wattline.twin.findings import (
    find_carbon,
    find_excess,
    find_heat,
    find_power,
    find_queue,
    find_utilisation,
    find_what_binds,
)
from wattline.twin.report import Minutes
from wattline.twin.timeline import Count, Sample, Series, Timeline


def a_series(
    *, watts: float = 0.0, cap_watts: float | None = None, celsius: float | None = None, waiting: int = 0
) -> Series:
    timeline = Timeline(0.0, a_layout(("ashburn",), racks=2), step_seconds=10.0)
    timeline.note_count(Count.GPUS_BUSY, 0.0, 1000)
    timeline.note_count(Count.JOBS_WAITING, 0.0, waiting)
    if cap_watts is not None:
        timeline.note_cap(1, cap_watts)
    timeline.note_watts(1, 0.0, watts)
    if celsius is not None:
        timeline.note_heat(1, celsius)
    timeline.finish(10.0, Sample(site_usd=(0.0,), site_kg=(0.0,)))
    return timeline.series()


def test_power_names_the_feed_nearest_to_its_cap() -> None:
    said = find_power(a_report(), a_series(watts=512e3))
    assert said == "Tightest on ashburn/b: 512 kW of 640 kW usable; no cap was violated"


def test_power_is_measured_against_the_cap_of_that_moment() -> None:
    said = find_power(a_report(cap_violations={"ashburn/b": 90.0}), a_series(watts=512e3, cap_watts=320e3))
    assert said == "Tightest on ashburn/b: 512 kW of 320 kW usable; ashburn/b over its cap for 1.5 min"


def test_a_feed_that_is_lost_is_not_said_to_have_carried_its_load_of_nothing() -> None:
    timeline = Timeline(0.0, a_layout(("ashburn",), racks=2), step_seconds=10.0)
    timeline.note_watts(1, 0.0, 512e3)
    timeline.note_cap(1, 0.0)
    timeline.note_watts(1, 4.0, 0.0)
    timeline.note_cap(1, 640e3)
    timeline.note_watts(1, 8.0, 320e3)
    timeline.finish(10.0, Sample(site_usd=(0.0,), site_kg=(0.0,)))
    said = find_power(a_report(), timeline.series())
    assert said == "Tightest on ashburn/b: 512 kW of 640 kW usable; no cap was violated"


def test_a_cap_that_was_passed_for_a_moment_is_told_as_such() -> None:
    said = find_power(a_report(), a_series(watts=264e3, cap_watts=237e3))
    assert said == "Tightest on ashburn/b: 264 kW of 237 kW usable; not for long, so that no cap was violated"


def test_the_worst_of_many_over_their_caps_is_named() -> None:
    over = {"ashburn/r01": 60.0, "ashburn/r02": 7200.0}
    said = find_power(a_report(cap_violations=over), a_series(watts=512e3))
    assert said.endswith("; ashburn/r02 and another over their caps, at worst for 2 h")
    said = find_power(a_report(cap_violations=over | {"ashburn/b": 1.0}), a_series(watts=512e3))
    assert said.endswith("; ashburn/r02 and 2 others over their caps, at worst for 2 h")


def test_heat_says_how_far_it_is_to_throttling() -> None:
    assert find_heat(a_series(celsius=81.0)) == "Hottest GPU 81.0 °C in ashburn/r02, 4.0 K below throttling"
    assert "throttled, its limit is 85.0 °C" in find_heat(a_series(celsius=85.0))
    assert find_heat(a_series()) == "Nobody looked at temperatures"


def test_utilisation_falls_back_to_what_was_recorded() -> None:
    assert find_utilisation(a_report(), a_series()) == "79 % of 2,500 GPUs were busy while jobs arrived"
    assert (
        find_utilisation(a_report(utilisation=None), a_series()) == "On average 1,000 of 2,500 GPUs were busy"
    )


def test_the_queue_is_told_by_what_half_and_nearly_all_waited() -> None:
    assert (
        find_queue(a_report(), a_series())
        == "Half of the jobs waited at most 2.2 min, one in twenty over 2.18 h"
    )
    no_wait = Minutes(mean=1.0, p50=0.0, p95=6.0)
    assert find_queue(a_report(wait_minutes=no_wait), a_series()).startswith("Half of the jobs did not wait")
    assert find_queue(a_report(wait_minutes=Minutes.of_seconds([])), a_series()) == "No job was started"


def test_a_queue_of_paused_jobs_is_told_although_every_job_began_at_once() -> None:
    at_once = a_report(wait_minutes=Minutes(mean=0.0, p50=0.0, p95=0.0))
    said = find_queue(at_once, a_series(waiting=49))
    assert said == "19 of 20 jobs that began did so at once; at most 49 waited or were paused at a time"


def test_carbon_and_cost_are_told_as_far_as_they_are_known() -> None:
    assert find_carbon(a_report()) == "440 t of CO₂e and 139,230 USD for energy"
    assert find_carbon(a_report(carbon_kg=None)) == "139,230 USD for energy"
    assert find_carbon(a_report(carbon_kg=None, cost_usd=None)) == "Neither carbon nor cost is known"


def test_what_binds_is_told_with_what_would_help_where_watts_are_claimed_and_not_drawn() -> None:
    waited = {"cooling.loop": 90.0, "gpus": 10.0}
    hours = 2500 * a_report().simulated_hours
    said = find_what_binds(a_report(waited_for=waited, idle_gpu_hours=0.25 * hours))
    assert said.startswith(
        "Jobs waited for cooling.loop 90 % of their time, while 25 % of all GPU-hours stood idle"
    )
    assert "power_sharing" in said
    for no_help in (
        {"shares_watts": True},  # it does already
        {"idle_gpu_hours": 0.01 * hours},  # nothing to be had
        {"waited_for": {"gpus": 1.0}},  # not by watts
    ):
        report = a_report(**{"waited_for": waited, "idle_gpu_hours": 0.25 * hours} | no_help)
        assert "power_sharing" not in find_what_binds(report)
    assert find_what_binds(a_report()) == ""


def test_work_that_was_done_over_caps_is_told_as_such() -> None:
    over = a_report(policy="power-blind", cap_violations={"zurich/r1": 60.0, "zurich/r2": 7200.0})
    assert find_excess(over) == "power-blind had zurich/r2 and another over their caps, at worst for 2 h"
    assert find_excess(a_report()) == ""
