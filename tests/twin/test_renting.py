"""Clouds in the twin: prices by the hour, machines that are taken back, and what jobs are charged."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from building import a_cloud, a_facility, a_link, a_policy, a_site
from wattline.control import StepRecord, decode_step
from wattline.errors import DocumentError
from wattline.facility import Cloud, Facility
from wattline.spec import read_facility
from wattline.state import (
    ActionKind,
    AttemptEnded,
    Ending,
    JobRequest,
    Measured,
    NodeGivenBack,
    NodeReclaimed,
    Plant,
)
from wattline.twin.renting import Renting
from wattline.twin.replaying import read_rules
from wattline.twin.report import Report
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.scenario import read_stage, setting_of
from wattline.twin.spot_prices import StrayingPrice, read_spot_prices
from wattline.twin.workload import Arrival

HOUR = 3600.0


def a_fleet(**cloud: Any) -> Facility:
    """Four GPUs of our own and 16 rented ones: who asks for eight must burst."""
    terms = {"reclaims_per_gpu_hour": 0.1, "notice_seconds": 120.0, "usd_per_gigabyte_out": 0.1} | cloud
    return a_facility(
        a_site(nodes=1, gpus=4),
        a_cloud(**terms),
        links=[a_link(("zurich", "cloud"), usd_per_gigabyte=0.0)],
    )


def arrivals(count: int, *, checkpoints: bool = True, work_seconds: float = 4 * HOUR) -> list[Arrival]:
    return [
        Arrival(
            at=BEGINS_AT + number * 600.0,
            request=JobRequest(
                job=f"r{number}/train",
                run=f"r{number}",
                gpus=8,
                burst=True,
                checkpoints=checkpoints,
                brings_back_bytes=10e9,
            ),
            work_seconds=work_seconds,
            utilisation=0.9,
            saved_every_seconds=1800.0 if checkpoints else 0.0,
        )
        for number in range(count)
    ]


def play(facility: Facility, jobs: list[Arrival], seed: int = 0) -> tuple[Report, list[StepRecord]]:
    kept: list[bytes] = []
    setting = Setting(
        name="rent", facility=facility, policy=a_policy(), arrivals=lambda: iter(jobs), seed=seed, exact=True
    )
    report = run(setting, keep=kept.append).report
    return report, [decode_step(data) for data in kept]


def ends(records: list[StepRecord]) -> Counter[Ending]:
    return Counter(event.ending for one in records for event in one.events if isinstance(event, AttemptEnded))


def test_every_job_ends_once_however_often_its_machine_is_taken_back() -> None:
    for seed in range(5):
        report, records = play(a_fleet(), arrivals(6), seed)
        assert report.reclaims > 0
        assert report.jobs.completed == 6
        assert ends(records)[Ending.SUCCEEDED] == 6


def test_no_job_runs_twice_at_a_time() -> None:
    _, records = play(a_fleet(), arrivals(6), 3)
    running: set[str] = set()
    for record in records:
        for event in record.events:
            if isinstance(event, AttemptEnded):
                running.remove(event.job)
        for action in record.decision.actions:
            if action.kind in (ActionKind.START, ActionKind.RESUME, ActionKind.MIGRATE):
                assert action.job not in running
                running.add(action.job)
    assert not running


def test_a_notice_that_lets_jobs_save_costs_no_work() -> None:
    report, records = play(a_fleet(), arrivals(6))
    assert ends(records)[Ending.PAUSED] > 0
    assert ends(records)[Ending.LOST] == 0
    assert report.lost_gpu_hours.restart == 0.0


def test_a_notice_too_short_to_save_costs_what_was_done_since_the_last_save() -> None:
    report, records = play(a_fleet(notice_seconds=5.0), arrivals(6))
    lost = ends(records)[Ending.LOST]
    assert lost > 0
    most_each = 8 * (1800.0 + 60.0) / HOUR  # an interval between saves, and a restart
    least_each = 8 * 60.0 / HOUR  # a save that was cut off keeps nothing: more is lost than the restarts
    assert lost * least_each < report.lost_gpu_hours.restart <= lost * most_each
    assert report.jobs.completed == 6


def test_a_job_that_never_saves_begins_anew_and_still_ends() -> None:
    report, records = play(a_fleet(reclaims_per_gpu_hour=0.02), arrivals(6, checkpoints=False))
    assert ends(records)[Ending.LOST] > 0
    assert ends(records)[Ending.PAUSED] == 0
    assert report.jobs.completed == 6


def test_a_machine_that_is_taken_back_takes_nobody_until_it_is_given_back() -> None:
    _, records = play(a_fleet(), arrivals(6), 1)
    out: set[str] = set()
    seen = 0
    for record in records:
        for event in record.events:
            if isinstance(event, NodeReclaimed):
                out.add(event.node)
            elif isinstance(event, NodeGivenBack):
                out.remove(event.node)
        for action in record.decision.actions:
            if action.place is not None:
                seen += bool(out)
                assert out.isdisjoint(node for node, _ in action.place.nodes)
    assert seen > 0


def test_the_same_seed_gives_the_same_digest_and_another_seed_other_reclaims() -> None:
    first, again, other = (play(a_fleet(varies_fraction=0.3), arrivals(4), seed)[0] for seed in (1, 1, 2))
    assert first.digest == again.digest
    assert first.digest != other.digest


def test_a_job_is_charged_by_the_hours_prices_and_for_what_comes_back() -> None:
    facility = a_fleet(reclaims_per_gpu_hour=0.0, varies_fraction=0.3)
    report, records = play(facility, arrivals(1))
    (ended,) = [event for one in records for event in one.events if isinstance(event, AttemptEnded)]
    cloud = facility.sites[1].cloud
    assert cloud is not None
    hours = StrayingPrice(cloud, "spot/0/cloud", BEGINS_AT)
    paid = 8 * hours.integral(BEGINS_AT, BEGINS_AT + 4 * HOUR)
    assert ended.usage.usd == pytest.approx(paid + 1.0, rel=1e-6)
    assert report.egress_usd == pytest.approx(1.0)


def test_prices_are_told_when_they_change_and_where_they_never_do_once() -> None:
    for varies, at_least, at_most in ((0.0, 1, 1), (0.3, 4, 6)):
        _, records = play(a_fleet(reclaims_per_gpu_hour=0.0, varies_fraction=varies), arrivals(1))
        told = [
            value
            for one in records
            for event in one.events
            if isinstance(event, Measured)
            for subject, quantity, value in event.readings
            if (subject, quantity) == ("cloud", "usd_per_gpu_hour")
        ]
        assert at_least <= len(told) <= at_most


def test_nobody_meters_what_is_rented() -> None:
    _, records = play(a_fleet(), arrivals(2))
    subjects = {
        subject
        for one in records
        for event in one.events
        if isinstance(event, Measured)
        for subject, quantity, _ in event.readings
        if quantity != "usd_per_gpu_hour"
    }
    assert not any(subject.startswith("cloud/") for subject in subjects)


def test_a_rented_machine_that_nobody_uses_draws_nothing_for_us() -> None:
    facility = a_fleet(reclaims_per_gpu_hour=0.0)
    idle = replace(facility.sites[1].racks[0].nodes[0].device, idle_watts=50.0)  # type: ignore[type-var]
    nodes = tuple(replace(node, device=idle) for node in facility.sites[1].racks[0].nodes)
    rack = replace(facility.sites[1].racks[0], nodes=nodes)
    facility = replace(facility, sites=(facility.sites[0], replace(facility.sites[1], racks=(rack,))))
    small = [replace_gpus(one, 4) for one in arrivals(1)]
    report, _ = play(facility, small)
    assert report.sites["cloud"].energy_kwh == 0.0


def replace_gpus(arrival: Arrival, gpus: int) -> Arrival:
    request = JobRequest(job=arrival.request.job, run=arrival.request.run, gpus=gpus)
    return Arrival(arrival.at, request, arrival.work_seconds, arrival.utilisation)


def test_a_price_strays_about_its_mean_and_stays_below_on_demand() -> None:
    cloud = Cloud(max_gpus=8, usd_per_gpu_hour=2.0, most_usd_per_gpu_hour=2.6, varies_fraction=0.2)
    price = StrayingPrice(cloud, "spot/0/x", 0.0)
    hours = [price.at(hour * HOUR) for hour in range(5000)]
    assert max(hours) <= 2.6
    assert len(set(hours)) > 1000
    assert sum(hours) / len(hours) == pytest.approx(2.0, rel=0.05)
    assert StrayingPrice(cloud, "spot/0/x", 0.0).at(4999 * HOUR) == hours[4999]
    assert price.integral(1800.0, 5400.0) == pytest.approx(0.5 * hours[0] + 0.5 * hours[1])


def test_reclaims_come_about_as_often_as_the_facility_says() -> None:
    plant = Plant(a_facility(a_cloud(machines=2000, reclaims_per_gpu_hour=0.005, notice_seconds=60.0)))
    rents = Renting(plant, 0, 0.0)
    rents.rent([(node, 8) for node in range(2000)], 0.0)
    rents.happen(HOUR * 5)
    assert rents.reclaims == pytest.approx(2000 * (1 - math.exp(-0.005 * 8 * 5)), rel=0.1)


def test_a_file_of_prices_beside_a_scenario_stands_instead_of_lots(tmp_path: Path) -> None:
    (tmp_path / "spot.csv").write_text("time,usd_per_gpu_hour\n2024-01-01T00:00Z,1.25\n2024-01-01T01:00Z,9\n")
    (tmp_path / "trial.yaml").write_text(
        "scenario: trial\nsay: what if\nfacility: three-sites-and-cloud\nlasts: 2h\n"
        "workload: {filled: 5%, gpus: [8], runs: [1h, 2h]}\nspot: {cloud-eu: spot.csv}\n"
    )
    stage = read_stage(tmp_path / "trial.yaml")
    assert stage.spot_prices["cloud-eu"].at(BEGINS_AT) == 1.25
    assert stage.spot_prices["cloud-eu"].integral(BEGINS_AT, BEGINS_AT + 2 * HOUR) == pytest.approx(10.25)
    assert read_spot_prices(read_facility("three-sites-and-cloud")) == {}
    (tmp_path / "trial.yaml").write_text((tmp_path / "trial.yaml").read_text().replace("-eu:", "-us:"))
    with pytest.raises(DocumentError, match=r"has no cloud of this name.*did you mean 'cloud-eu'"):
        read_stage(tmp_path / "trial.yaml")


def test_the_shipped_scenario_takes_machines_back_and_loses_no_job() -> None:
    kept: list[bytes] = []
    report = run(setting_of(read_stage("spot-reclaim"), read_rules("default")), keep=kept.append).report
    records = [decode_step(data) for data in kept]
    assert report.reclaims >= 10
    assert ends(records)[Ending.LOST] == 0
    assert report.lost_gpu_hours.restart == 0.0
    assert report.egress_usd > 0.0
    assert report.sites["cloud-eu"].utilisation is not None
