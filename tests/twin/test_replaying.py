from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cli.replayed import FACILITY, row, write_trace
from shared_data import shared_data
from wattline.errors import UnavailableError
from wattline.policy import decide
from wattline.twin.baselines import BASELINES
from wattline.twin.replaying import Question, read_material, read_rules, setting_of
from wattline.twin.run import BEGINS_AT, run


@pytest.fixture
def question(tmp_path: Path) -> Question:
    (tmp_path / "small.yaml").write_text(FACILITY)
    trace = write_trace(tmp_path / "jobs.csv", [row(0, 60, 1), row(60, -1, 1), row(120, 60, 2)])
    return Question(trace=trace, facility=str(tmp_path / "small.yaml"), seed=3, until_seconds=600.0)


def test_a_setting_says_what_was_asked(question: Question) -> None:
    setting = setting_of(read_material(question), read_rules("default"))
    assert (setting.name, setting.facility.name, setting.decided_by) == ("jobs", "small", "default")
    assert (setting.seed, setting.exact, setting.until_seconds) == (3, False, 600.0)
    assert setting.lines_refused == 1
    assert setting.decide is decide
    assert setting.rates is None


def test_a_seed_changes_what_jobs_draw_and_not_when_they_come(question: Question) -> None:
    material, rules = read_material(question), read_rules("default")
    ours, theirs = (list(setting_of(material, rules, seed).arrivals()) for seed in (1, 2))
    assert [each.at for each in ours] == [each.at for each in theirs]
    assert [each.request for each in ours] == [each.request for each in theirs]
    assert [each.utilisation for each in ours] != [each.utilisation for each in theirs]


def test_a_replay_begins_when_it_is_told_to_and_is_the_same_otherwise(question: Question) -> None:
    rules, later_seconds = read_rules("default"), 182 * 86_400.0
    january, july = (
        run(setting_of(read_material(replace(question, begins_at=begins_at)), rules)).report
        for begins_at in (BEGINS_AT, BEGINS_AT + later_seconds)
    )
    assert (january.begins_at, july.begins_at) == ("2024-01-01T00:00:00Z", "2024-07-01T00:00:00Z")
    assert january.jobs == july.jobs
    assert january.simulated_hours == july.simulated_hours


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_decides_by_the_default_documents_thresholds(name: str) -> None:
    rules = read_rules(name)
    assert rules.decide is BASELINES[name]
    assert rules.policy == read_rules("default").policy
    assert rules.name == name


def test_an_unknown_policy_is_told_with_what_is_known() -> None:
    with pytest.raises(UnavailableError, match="did you mean 'power-blind'"):
        read_rules("power-blnd")


def test_a_steady_job_emits_evenly_and_all_of_it_is_recorded(question: Question) -> None:
    trace = write_trace(question.trace, [row(0, 40_000, 8)])
    material = read_material(replace(question, trace=trace, until_seconds=36_000.0))
    outcome = run(setting_of(material, read_rules("fifo")), recorded=True)
    assert outcome.timeline is not None
    series = outcome.timeline.series()
    kg_per_hour = series.kg_per_hour[:, 0]
    assert kg_per_hour @ series.hours == pytest.approx(outcome.report.carbon_kg)
    assert series.usd_per_hour[:, 0] @ series.hours == pytest.approx(outcome.report.energy_usd)
    assert kg_per_hour.min() == pytest.approx(kg_per_hour.max())
    assert series.hours.sum() == pytest.approx(10.0)


def test_feeds_carry_what_is_decided_from_when_it_is_decided(question: Question) -> None:
    trace = write_trace(question.trace, [row(0, 900, 2), row(1800, 36_000, 8)])  # then nothing for ten hours
    material = read_material(replace(question, trace=trace, until_seconds=None))
    outcome = run(setting_of(material, read_rules("fifo")), recorded=True)
    assert outcome.timeline is not None
    series, site = outcome.timeline.series(), outcome.report.sites["here"]
    kwh = (series.feed_watts.sum(axis=1) @ series.hours) / 1000.0
    assert kwh * site.pue == pytest.approx(site.energy_kwh)
    assert series.feed_peak_watts.sum(axis=1).max() / 1000.0 == pytest.approx(site.peak_kw)


def test_a_pollux_trace_brings_its_measured_rates() -> None:
    trace = shared_data("jobs/pollux-workload-1.csv.gz")
    profiles = shared_data("jobs/pollux-throughput-profiles")
    material = read_material(Question(trace=trace, facility="philly-800", most_jobs=3))
    assert material.rates is not None
    assert material.rates.folder == profiles
