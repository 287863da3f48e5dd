from __future__ import annotations

import math

import msgspec
import pytest

from twin.recording import a_report
from wattline.twin.report import Minutes, Report, sizes_of


def test_json_has_the_keys_that_scripts_depend_on() -> None:
    written = msgspec.json.decode(msgspec.json.encode(a_report()))
    promised = """trace jobs gpus simulated_hours wall_seconds cpu_seconds jobs_per_cpu_second wait_minutes
        completion_minutes useful_gpu_hours lost_gpu_hours utilisation energy_kwh cost_usd carbon_kg pue tue
        peak_kw cap_violation_seconds throttle_gpu_seconds shutdowns preemptions migrations seed digest"""
    added = """facility policy arrival_scale truth emulated not_estimated refused_because lines_refused trips
        sites feeds egress_usd reclaims late sizes slos power_throttle_gpu_seconds heat_throttle_gpu_seconds
        cap_violations begins_at waited_for idle_gpu_hours shares_watts"""
    assert set(written) == {*promised.split(), *added.split()}
    assert set(written["jobs"]) == {"submitted", "completed", "refused", "unfinished"}
    assert set(written["wait_minutes"]) == set(written["completion_minutes"]) == {"mean", "p50", "p95"}
    assert set(written["lost_gpu_hours"]) == {"throttle", "restart", "preempt", "pause"}
    assert written["emulated"] is True


def test_a_report_comes_back_from_json_as_it_was() -> None:
    report = a_report(carbon_kg=None)
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


def test_whatever_is_null_is_named_however_deep() -> None:
    site = msgspec.structs.replace(a_report().sites["lulea"], tue=None)
    nothing = Minutes.of_seconds([])
    report = a_report(carbon_kg=None, pue=math.nan, wait_minutes=nothing, sites={"lulea": site})
    named = {
        "carbon_kg",
        "pue",
        "sites.lulea.tue",
        "wait_minutes.mean",
        "wait_minutes.p50",
        "wait_minutes.p95",
    }
    assert set(report.not_estimated) == named
    assert a_report().not_estimated == ()


def test_nobody_can_claim_that_something_is_not_estimated() -> None:
    assert a_report(not_estimated=("energy_kwh",)).not_estimated == ()


def test_minutes_are_of_seconds() -> None:
    minutes = Minutes.of_seconds([60.0 * value for value in range(101)])
    assert minutes.mean == pytest.approx(50.0)
    assert minutes.p50 == pytest.approx(50.0)
    assert minutes.p95 == pytest.approx(95.0)


def test_waits_are_told_by_size_and_only_of_sizes_that_came() -> None:
    sizes = sizes_of([1, 1, 7, 8, 64, 512], [0.0, 120.0, 60.0, 600.0, 1200.0, 2400.0])
    told = {name: (size.started, size.wait_minutes.mean) for name, size in sizes.items()}
    assert told == {"1 GPU": (2, 1.0), "2-7 GPUs": (1, 1.0), "8-63 GPUs": (1, 10.0), "64+ GPUs": (2, 30.0)}
    assert sizes_of([], []) == {}


def test_what_was_lost_adds_up() -> None:
    assert a_report().lost_gpu_hours.total == pytest.approx(210.0 + 95.5 + 41.0 + 12.25)
