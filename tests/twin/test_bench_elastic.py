"""The benchmark of elastic jobs in short: a burst is through sooner, and no work is lost or made up."""

from __future__ import annotations

import pytest
from bench.elastic import policies, replay


def test_a_burst_of_elastic_jobs_is_through_sooner_where_they_are_resized() -> None:
    rigid, resized, _ = (replay(policy, 0, 30, 0.9) for policy in policies().values())
    assert rigid.report.jobs.completed == resized.report.jobs.completed == 30
    assert resized.report.useful_gpu_hours == pytest.approx(rigid.report.useful_gpu_hours)
    assert resized.report.completion_minutes.mean is not None
    assert rigid.report.completion_minutes.mean is not None
    assert resized.report.completion_minutes.mean < rigid.report.completion_minutes.mean
    assert resized.early_gpu_hours >= rigid.early_gpu_hours
