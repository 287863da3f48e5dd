"""Conditions: what is left, when it is full at the present rise, and who fits, in words and numbers."""

from __future__ import annotations

import pytest

from building import MONDAY, Hall, a_job, a_link, a_policy, a_site, a_world
from wattline.policy import Room, SiteConditions, judge_conditions
from wattline.policy.explaining.conditions import Before


def a_hall(**site: object) -> Hall:
    """Two nodes of eight GPUs at 400 W on a loop of 8 kW; everything has a meter."""
    fields = {
        "telemetry": "emulated",
        "loop_watts": 8000.0,
        "rack_cap_watts": 8000.0,
        "feeds_watts": (8000.0,),
    }
    policy = a_policy(thresholds={"power_margin": "0%", "cooling_margin": "0%"})
    hall = a_world(a_site(**{**fields, **site}), policy=policy)  # type: ignore[arg-type]
    for subject, quantity in (
        ("zurich/r1", "rack_watts"),
        ("zurich/feed-a", "supply_watts"),
        ("zurich/loop", "loop_heat_watts"),
    ):
        hall.read(subject, quantity, 1000.0)
    return hall


def conditions(hall: Hall, before: Before | None = None) -> SiteConditions:
    return judge_conditions(hall.snapshot(), hall.policy, "zurich", before)


def room(found: SiteConditions, name: str) -> Room:
    (one,) = [room for room in found.rooms if room.name == name]
    return one


def test_what_is_left_is_told_with_who_fits() -> None:
    hall = a_hall()
    loop = room(conditions(hall), "zurich/loop")
    assert (loop.kind, loop.unit, loop.usable, loop.drawn, loop.left) == (
        "loop",
        "watts",
        8000.0,
        1000.0,
        7000.0,
    )
    assert (loop.fitting_jobs, loop.job_gpus) == (2, 8)
    assert loop.say == "loop loop: 7 kW of 8 kW left; 2 jobs of 8 GPUs fit"


def test_who_fits_turns_exactly_at_what_a_job_takes() -> None:
    hall = a_hall()
    for drawn, fits, words in ((1600.0, 2, "2 jobs of 8 GPUs fit"), (1601.0, 1, "1 job of 8 GPUs fits")):
        hall.wait(1.0)
        hall.read("zurich/loop", "loop_heat_watts", drawn)
        loop = room(conditions(hall), "zurich/loop")
        assert loop.fitting_jobs == fits
        assert loop.say.endswith(words)


def test_no_more_fit_than_whole_nodes_are_free() -> None:
    hall = a_hall(loop_watts=1e6, rack_cap_watts=1e6, feeds_watts=(1e6,))
    hall.run(a_job(gpus=8))
    assert room(conditions(hall), "zurich/loop").fitting_jobs == 1
    assert room(conditions(hall), "zurich/loop").running_jobs == 1
    assert conditions(hall).gpus_free == 8


def test_at_the_present_rise_it_is_full_in_so_many_minutes() -> None:
    hall = a_hall()
    before = {"zurich/loop": (600.0, MONDAY - 120.0)}  # 200 W a minute
    found = conditions(hall, before)
    loop = room(found, "zurich/loop")
    assert loop.rises_per_minute == pytest.approx(200.0)
    assert loop.full_in_minutes == pytest.approx(35.0)
    assert "at the present rise it is full in 35 min" in loop.say
    assert found.say == (loop.say,)


@pytest.mark.parametrize(
    "before",
    [
        None,
        (600.0, MONDAY - 59.0),
        (1000.0, MONDAY - 600.0),
        (1400.0, MONDAY - 600.0),
        (999.9, MONDAY - 600.0),
    ],
)
def test_what_does_not_rise_or_is_not_known_to_is_never_full(before: tuple[float, float] | None) -> None:
    found = conditions(a_hall(), {} if before is None else {"zurich/loop": before})
    assert room(found, "zurich/loop").full_in_minutes is None
    assert found.say == ()


def test_a_silent_meter_is_said_and_counts_as_the_worst() -> None:
    hall = a_hall()
    hall.wait(31.0)
    found = conditions(hall)
    feed = room(found, "zurich/feed-a")
    assert (feed.drawn, feed.left) == (None, 8000.0 - 6400.0)
    assert "not read for 31 s, so it counts as the worst it could be" in feed.say
    assert len(found.say) == 3


@pytest.mark.parametrize("before", [{}, {"zurich/r1": (9000.0, MONDAY - 300.0)}])
def test_what_is_over_is_said_first_and_not_that_it_will_be_full(
    before: dict[str, tuple[float, float]],
) -> None:
    hall = a_hall()
    hall.wait(1.0)
    hall.read("zurich/r1", "rack_watts", 9500.0)
    found = conditions(hall, before)
    assert found.say[0].startswith("rack r1: 1.5 kW over the 8 kW that may be used; no job of 8 GPUs fits")


def test_heat_is_told_in_minutes() -> None:
    hall = a_hall(loop_watts=1e6, rack_cap_watts=1e6, feeds_watts=(1e6,))
    hall.run(a_job(gpus=8))
    assert room(conditions(hall), "zurich/loop").throttles_in_minutes is None
    hall.wait(1.0)
    hall.read("zurich/loop", "supply_celsius", 60.0)
    hall.read("zurich/loop", "coolant_celsius", 55.0)
    for number in range(8):
        hall.read(f"zurich/r1-n1/gpu{number}", "gpu_celsius", 75.0)
        hall.read(f"zurich/r1-n1/gpu{number}", "gpu_watts", 400.0)
    loop = room(conditions(hall), "zurich/loop")
    assert loop.throttles_in_minutes is not None
    assert "GPUs on it throttle in" in loop.say


def test_links_of_a_site_are_told_in_bits_and_those_of_others_are_not() -> None:
    sites = [a_site(name) for name in ("zurich", "paris", "oslo")]
    links = [a_link(("zurich", "paris")), a_link(("paris", "oslo"))]
    hall = a_world(*sites, links=links)
    names = [one.name for one in conditions(hall).rooms if one.kind == "link" and one.cap]
    assert sorted(names) == ["zurich-paris:checkpoint", "zurich-paris:control"]
    assert "1 Gbit/s of 1 Gbit/s left" in room(conditions(hall), "zurich-paris:checkpoint").say
