from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from building import MONDAY, a_facility, a_job, a_policy, a_site
from wattline.twin.replaying import read_rules
from wattline.twin.report import Report
from wattline.twin.run import Setting, run
from wattline.twin.workload import Arrival

HOUR = 3600.0
# Two nodes of 8 GPUs at 400 W in a rack that carries one and a half of them.
FACILITY = a_facility(a_site(nodes=2, gpus=8, rack_cap_watts=4800.0))


def replayed(gpus: Sequence[int], *, decided_by: str = "default", every_seconds: float = 0.0) -> Report:
    """Jobs of an hour, one after the other."""

    def arrivals() -> Iterator[Arrival]:
        for number, each in enumerate(gpus):
            request = a_job(f"r{number}/train", gpus=each)
            at = MONDAY + number * every_seconds
            yield Arrival(at=at, request=request, work_seconds=HOUR, utilisation=0.5)

    rules = read_rules(decided_by)
    setting = Setting(
        name="waits", facility=FACILITY, policy=a_policy(), arrivals=arrivals, begins_at=MONDAY, exact=True
    )
    return run(replace(setting, decide=rules.decide)).report


def test_what_a_job_waits_for_and_what_stands_idle_meanwhile_is_told_by_the_hour() -> None:
    report = replayed([8, 8])
    assert report.waited_for == {"power.rack": pytest.approx(1.0)}
    assert report.idle_gpu_hours == pytest.approx(8.0)
    assert not report.shares_watts


def test_jobs_of_a_kind_share_the_reason_that_was_told_of_one() -> None:
    """Of three that wait only the first is tried: 1 + 2 + 3 hours of waiting, all for the same."""
    assert replayed([8, 8, 8, 8]).waited_for == {"power.rack": pytest.approx(6.0)}


def test_whoever_starts_at_once_waits_for_nothing_however_long_nothing_happened_before() -> None:
    report = replayed([8, 8], every_seconds=5 * HOUR)
    assert report.waited_for == {}
    assert report.idle_gpu_hours == 0.0


def test_a_policy_that_says_nothing_of_waiting_is_not_given_reasons() -> None:
    report = replayed([8, 8, 8], decided_by="fifo")
    assert report.simulated_hours == pytest.approx(2.0)  # the third waited: it puts two on the rack at once
    assert report.waited_for == {}
    assert report.idle_gpu_hours == 0.0
