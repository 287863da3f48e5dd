"""The twin tells what the hours ahead are expected to be, and jobs are shifted by it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from building import a_facility, a_job, a_policy, a_site
from wattline.control import decode_step
from wattline.facility import Site
from wattline.state import AttemptEnded, Ending, State
from wattline.twin.outlooking import AHEAD_HOURS, Outlooker
from wattline.twin.report import Report
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.surroundings import HourlySeries, HourlySurroundings
from wattline.twin.workload import Arrival

HOUR = 3600.0
BEGINS = BEGINS_AT + 20 * 24 * HOUR
SHIFTING = {"by": "carbon", "margin": "30min"}


def a_sunny_series() -> HourlySeries:
    """Clean at noon, dirty at midnight, every day."""
    return HourlySeries([300.0 + 200.0 * math.cos(math.pi * hour / 12.0) for hour in range(366 * 24)])


def sunny(site: Site) -> HourlySurroundings:
    return HourlySurroundings(site, carbon=a_sunny_series())


def arrivals() -> Iterator[Arrival]:
    """One job each hour for two days, of 2 to 5 hours, each with a day of slack."""
    for number in range(48):
        at, work = BEGINS + number * HOUR + 600.0, (2 + number % 4) * HOUR
        request = a_job(
            f"r{number}/train",
            max_duration_seconds=work + 600.0,
            deadline_at=at + work + 24 * HOUR,
            checkpoints=True,
        )
        yield Arrival(at=at, request=request, work_seconds=work, utilisation=1.0)


def replay(keep: list[bytes] | None = None, **policy: Any) -> Report:
    site = a_site(nodes=1, gpus=8, usd_per_kwh=0.1)
    setting = Setting(
        name="sunny",
        facility=a_facility(site),
        policy=a_policy(**policy),
        arrivals=arrivals,
        exact=True,
        surroundings={"zurich": sunny(site)},
        begins_at=BEGINS,
    )
    return run(setting, keep=keep.append if keep is not None else None).report


@pytest.fixture(scope="module")
def blind() -> Report:
    return replay()


@pytest.fixture(scope="module")
def shifted() -> Report:
    return replay(shifting=SHIFTING)


def test_the_same_work_emits_a_third_less(blind: Report, shifted: Report) -> None:
    assert shifted.jobs.completed == blind.jobs.completed == 48
    assert shifted.useful_gpu_hours == pytest.approx(blind.useful_gpu_hours)
    assert blind.carbon_kg is not None
    assert shifted.carbon_kg is not None
    assert shifted.carbon_kg < 0.67 * blind.carbon_kg


def test_no_deadline_is_missed_though_jobs_are_suspended() -> None:
    kept: list[bytes] = []
    replay(kept, shifting=SHIFTING)
    due = {arrival.request.job: arrival.request.deadline_at for arrival in arrivals()}
    events = [event for data in kept for event in decode_step(data).events]
    ended = [event for event in events if isinstance(event, AttemptEnded)]
    done = {event.job: event.at for event in ended if event.ending is Ending.SUCCEEDED}
    assert {job for job, at in done.items() if at <= (due[job] or 0.0)} == set(due)
    assert any(event.ending is Ending.PAUSED for event in ended)


def test_the_same_setting_gives_the_same_digest(shifted: Report) -> None:
    assert replay(shifting=SHIFTING).digest == shifted.digest


def test_an_outlook_knows_nothing_of_what_comes() -> None:
    site = a_site()
    usual = sunny(site)
    surprising = HourlySurroundings(site, carbon=_changed_after(BEGINS))
    policy, state = a_policy(shifting=SHIFTING), State(a_facility(site))
    (told,) = Outlooker({"zurich": usual}).look(state, policy, BEGINS + 60.0)
    assert Outlooker({"zurich": surprising}).look(state, policy, BEGINS + 60.0) == [told]
    assert told.begins_at == BEGINS
    assert len(told.hours) == AHEAD_HOURS
    assert told.hours[12].grams_co2_per_kwh == pytest.approx(100.0, abs=1.0)


def _changed_after(at: float) -> HourlySeries:
    usual, first = a_sunny_series(), int((at - BEGINS_AT) / HOUR)
    values = [usual.at(BEGINS_AT + hour * HOUR) if hour < first else 7.0 for hour in range(366 * 24)]
    return HourlySeries(values)
