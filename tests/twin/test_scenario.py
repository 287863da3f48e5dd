"""A scenario is looked up in a facility, its jobs are made, and every policy meets the same ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from twin.recording import a_report
from wattline.errors import DocumentError, UsageError
from wattline.facility import Facility
from wattline.spec import Condition, Workload, read_facility, read_scenario
from wattline.twin.replaying import read_rules
from wattline.twin.report import Report
from wattline.twin.run import BEGINS_AT, run
from wattline.twin.scenario import faults_of, marks_of, read_stage, set_side_by_side, setting_of, shifted
from wattline.twin.scenario_names import check_names
from wattline.twin.synthetic import drive, make_jobs
from wattline.twin.timeline import Mark
from wattline.twin.workload import arrivals_of

HEAD = "scenario: trial\nsay: what if\nfacility: lab\nlasts: 2h\n"
MADE = "workload: {filled: 70%, gpus: [1, 8], runs: [1h, 4h], utilisation: [80%, 90%]}\n"


def write(folder: Path, rest: str = "", workload: str = MADE) -> Path:
    path = folder / "trial.yaml"
    path.write_text(HEAD + workload + rest)
    return path


def a_workload(**fields: object) -> Workload:
    made = {"gpus": [1, 4, 8], "runs": ["1h", "8h"]} | fields
    return Workload.model_validate(made)


def a_condition(**fields: object) -> Condition:
    return Condition.model_validate({"name": "c", "at": {"after": "1h"}} | fields)


def play(path: Path, policy: str = "default", seed: int = 0, facility: str | None = None) -> Report:
    return run(setting_of(read_stage(path, facility), read_rules(policy), seed=seed)).report


# Names.


@pytest.mark.parametrize(
    ("list_name", "entry", "field", "known", "nearest"),
    [
        ("faults", "loop: crahh, flow: 0%", "loop", "zurich/crah", "zurich/crah"),
        ("faults", "rack: zurich/r9, rating: 0%", "rack", "zurich/r2", "zurich/r"),
        ("faults", "supply: zurich/c, rating: 0%", "supply", "zurich/a", "zurich/"),
        ("faults", "link: zrh-fr, bandwidth: 0%", "link", "zrh-fra", "zrh-fra"),
        ("conditions", "site: zurch, limit: 0%", "site", "frankfurt", "zurich"),
    ],
)
def test_a_name_that_the_facility_does_not_have_is_told_with_its_line_and_the_nearest(
    tmp_path: Path, list_name: str, entry: str, field: str, known: str, nearest: str
) -> None:
    path = write(tmp_path, f"{list_name}:\n  - {{name: f, at: {{after: 1h}}, {entry}}}")
    with pytest.raises(DocumentError) as raised:
        read_stage(path)
    (problem,) = raised.value.problems
    assert (problem.file, problem.line, problem.field) == (str(path), 7, f"{list_name}[0].{field}")
    assert known in (problem.allowed or "")
    assert (problem.nearest or "").startswith(nearest)


def test_a_name_that_means_more_than_one_thing_is_told_with_all_of_them(tmp_path: Path) -> None:
    path = write(tmp_path, "faults:\n  - {name: f, at: {after: 1h}, rack: r1, rating: 50%}")
    with pytest.raises(DocumentError, match=r"more than one rack of this name.*zurich/r1, frankfurt/r1"):
        read_stage(path)


def test_every_wrong_name_is_told_at_once(tmp_path: Path) -> None:
    fault = "faults:\n  - {name: f, at: {after: 1h}, loop: x, flow: 0%}\n"
    rest = f"{fault}conditions:\n  - {{name: c, at: {{after: 1h}}, site: y, limit: 1%}}"
    with pytest.raises(DocumentError) as raised:
        read_stage(write(tmp_path, rest))
    assert [problem.line for problem in raised.value.problems] == [7, 9]


def without(facility: Facility, part: str) -> Facility:
    if part == "link":
        return replace(facility, links=())
    return replace(facility, sites=tuple(replace(site, loops=()) for site in facility.sites))


@pytest.mark.parametrize(
    ("part", "fault", "say"),
    [
        ("loop", "loop: zurich/crah, flow: 0%", "none: it has no loop"),
        ("link", "link: zrh-fra, bandwidth: 0%", "none: it has no link"),
    ],
)
def test_a_facility_without_such_things_at_all_is_said_to_have_none(
    tmp_path: Path, part: str, fault: str, say: str
) -> None:
    written = read_scenario(write(tmp_path, f"faults:\n  - {{name: f, at: {{after: 1h}}, {fault}}}"))
    with pytest.raises(DocumentError) as raised:
        check_names(written, without(read_facility("lab"), part))
    assert raised.value.problems[0].allowed == say


def test_another_facility_must_have_what_the_scenario_names() -> None:
    with pytest.raises(
        DocumentError, match="facility philly-800 has no loop of this name, got 'lulea/cdu-1'"
    ):
        read_stage("pump-trip", "philly-800")


def test_a_facility_and_a_trace_are_found_beside_the_scenario(tmp_path: Path) -> None:
    facility = Path(read_facility("lab").source).read_text().replace("facility: lab", "facility: mine")
    (tmp_path / "mine.yaml").write_text(facility)
    rows = ("2020-01-01 00:00:00,600,8,4800,a", "2020-01-01 00:01:00,x,1,1,a")
    header = "timestamp,duration,num_gpus,gpu_time,cluster"
    (tmp_path / "jobs.csv").write_text("\n".join((header, *rows)))
    path = tmp_path / "trial.yaml"
    path.write_text(HEAD.replace("lab", "mine.yaml") + "workload: {trace: jobs.csv}\n")
    stage = read_stage(path)
    assert (stage.facility.name, len(stage.recorded or ()), stage.lines_refused) == ("mine", 1, 1)
    assert play(path).jobs.completed == 1


# What happens to a whole site.


def test_a_limit_is_left_of_each_feed_and_of_no_pdu() -> None:
    faults = list(faults_of([a_condition(site="frankfurt", limit="40%", lasts="1h")], read_facility("lab")))
    assert [(fault.supply, fault.rating, fault.lasts) for fault in faults] == [
        ("frankfurt/main", 0.4, 3600.0)
    ]


def test_pictures_mark_each_thing_that_happens_once_by_its_name() -> None:
    marks = list(marks_of(read_stage("pump-trip").scenario, BEGINS_AT))
    assert marks == [Mark("pumps-stopped", BEGINS_AT + 6600.0, BEGINS_AT + 6900.0)]
    names = [mark.name for mark in marks_of(read_stage("site-loss").scenario, BEGINS_AT)]
    assert len(names) == len(set(names)) == 1  # although many feeds and links go with it


def test_what_happens_comes_as_long_after_another_beginning() -> None:
    """Neither tariff nor weather changes by the season here: what it costs is the same."""
    july = BEGINS_AT + 182 * 86400.0
    stages = read_stage("grid-event"), read_stage("grid-event", begins_at=july)
    first, second = (run(setting_of(stage, read_rules("default"))).report for stage in stages)
    assert second.begins_at == "2024-07-01T00:00:00Z"
    assert (second.jobs, second.preemptions) == (first.jobs, first.preemptions)
    assert second.cost_usd == pytest.approx(first.cost_usd)
    marks = [list(setting_of(stage, read_rules("default")).marks) for stage in stages]
    assert [later.begins_at - mark.begins_at for mark, later in zip(*marks, strict=True)] == [182 * 86400.0]


def test_a_lost_site_has_neither_feeds_nor_links() -> None:
    faults = list(faults_of([a_condition(site="zurich", lost=True)], read_facility("lab")))
    assert {(fault.subject, fault.rating, fault.bandwidth) for fault in faults} == {
        ("zurich/a", 0.0, None),
        ("zurich/b", 0.0, None),
        ("zrh-fra", None, 0.0),
    }
    assert all(fault.at.after == 3600.0 and fault.lasts is None for fault in faults)


def test_a_condition_of_no_site_holds_for_all() -> None:
    faults = list(faults_of([a_condition(limit="50%")], read_facility("lab")))
    assert {fault.supply for fault in faults} == {"zurich/a", "zurich/b", "frankfurt/main"}


def test_conditions_shift_surroundings_while_they_last_and_add_up() -> None:
    around = shifted(
        [
            a_condition(site="zurich", outside="5K", lasts="2h"),
            a_condition(at={"after": "2h"}, lasts="1h", outside="3K", price_factor=4.0),
        ],
        read_facility("lab"),
        BEGINS_AT,
    )
    zurich = around["zurich"]
    loop = zurich.site.loops[0]
    warmer = [zurich.supply_celsius(loop, BEGINS_AT + 3600.0 * hour) - 22.0 for hour in (0.5, 1, 2, 2.9, 3)]
    assert warmer == pytest.approx([0.0, 5.0, 8.0, 8.0, 0.0])
    assert around["frankfurt"].usd_per_kwh(BEGINS_AT + 7200.0) == pytest.approx(4 * 0.19)
    assert around["frankfurt"].usd_per_kwh(BEGINS_AT + 3600.0) == pytest.approx(0.19)


# Jobs that are made up.


def test_jobs_fill_as_much_as_is_said_and_come_in_order() -> None:
    jobs = make_jobs(a_workload(filled="60%", arrivals_per_hour=10), 1000, 7200.0, seed=1)
    first = [job for job in jobs if job.arrives_seconds <= 1800.0]
    assert 590 <= sum(job.gpus for job in first) <= 600 + 8 * 20
    assert [job.arrives_seconds for job in jobs] == sorted(job.arrives_seconds for job in jobs)
    assert all(job.gpus in (1, 4, 8) and 0.0 < job.work_seconds <= 8 * 3600.0 for job in jobs)
    assert len({job.name for job in jobs}) == len(jobs)


def test_new_arrivals_come_at_their_mean_rate_and_run_within_the_span() -> None:
    jobs = make_jobs(a_workload(arrivals_per_hour=100), 1000, 100 * 3600.0, seed=2)
    assert 9_500 < len(jobs) < 10_500
    assert min(job.work_seconds for job in jobs) >= 3600.0
    assert max(job.work_seconds for job in jobs) <= 8 * 3600.0
    halves = Counter(job.work_seconds < 3600.0 * 8**0.5 for job in jobs)
    assert halves[True] / len(jobs) == pytest.approx(0.5, abs=0.03)  # each doubling is as likely as the next


def test_a_burst_comes_when_it_is_said_to() -> None:
    burst = {"at": {"after": "1h"}, "jobs": 50, "within": "5min"}
    jobs = make_jobs(a_workload(bursts=[burst]), 1000, 7200.0, seed=3)
    assert len(jobs) == 50
    assert all(3600.0 <= job.arrives_seconds <= 3900.0 for job in jobs)


def test_the_same_seed_makes_the_same_jobs_and_another_does_not() -> None:
    workload = a_workload(filled="60%", arrivals_per_hour=10)
    assert make_jobs(workload, 1000, 7200.0, 1) == make_jobs(workload, 1000, 7200.0, 1)
    assert make_jobs(workload, 1000, 7200.0, 1) != make_jobs(workload, 1000, 7200.0, 2)


def test_too_many_jobs_are_refused_before_they_fill_the_memory() -> None:
    with pytest.raises(UsageError, match="more than 1,000,000 jobs"):
        make_jobs(a_workload(arrivals_per_hour=100_000), 1000, 20 * 3600.0, seed=0)


def test_how_hard_jobs_work_and_how_often_they_save_is_their_own_lot() -> None:
    workload = a_workload(filled="60%", utilisation=["80%", "90%"], saves=["10min", "20min"])
    jobs = make_jobs(workload, 1000, 7200.0, 1)
    arrivals = list(drive(arrivals_of(jobs, 0.0, 1), workload, 1))
    assert all(0.8 <= arrival.utilisation <= 0.9 for arrival in arrivals)
    assert all(600.0 <= arrival.saved_every_seconds <= 1200.0 for arrival in arrivals)
    assert len({arrival.utilisation for arrival in arrivals}) == len(arrivals)
    alone = list(drive(arrivals_of(jobs[3:4], 0.0, 1), workload, 1))
    assert alone == [arrivals[3]]


def test_jobs_work_as_on_a_real_cluster_unless_said() -> None:
    workload = a_workload(filled="60%")
    jobs = make_jobs(workload, 1000, 7200.0, 1)
    assert list(drive(arrivals_of(jobs, 0.0, 1), workload, 1)) == list(arrivals_of(jobs, 0.0, 1))


# Playing.


def test_policies_meet_the_same_jobs_and_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    path = write(tmp_path, "faults: [{name: f, at: {after: 1h}, supply: zurich/a, rating: 50%}]\n")
    first, again, blind = play(path), play(path), play(path, "power-blind")
    assert first.digest == again.digest != blind.digest
    assert first.jobs.submitted == blind.jobs.submitted > 0
    assert play(path, seed=1).digest != first.digest
    assert first.simulated_hours == pytest.approx(2.0)


def test_what_still_runs_at_the_end_has_cost_its_gpus(tmp_path: Path) -> None:
    path = write(tmp_path, workload="workload: {filled: 50%, gpus: [8], runs: [100h, 101h]}\n")
    report = play(path)
    assert report.jobs.completed < report.jobs.submitted
    assert report.cost_usd is not None
    assert report.energy_usd is not None
    busy_hours = report.useful_gpu_hours + report.lost_gpu_hours.total
    assert report.cost_usd - report.energy_usd == pytest.approx(1.6 * busy_hours, rel=0.05)  # an A100's


def test_a_ratio_is_of_useful_gpu_hours_and_unknown_where_nobody_stands_beside() -> None:
    stage = read_stage("site-loss")
    ours, theirs = (a_report(useful_gpu_hours=hours) for hours in (110.0, 100.0))
    assert set_side_by_side(stage, ours, theirs).useful_gpu_hours_ratio == pytest.approx(1.1)
    alone = set_side_by_side(stage, ours, None)
    assert (alone.useful_gpu_hours_ratio, alone.not_estimated) == (None, ("useful_gpu_hours_ratio",))
    idle = set_side_by_side(stage, ours, a_report(useful_gpu_hours=0.0))
    assert idle.useful_gpu_hours_ratio is None
