"""SLOs on the steps of a run: what is counted is what happened, and counting changes nothing."""

from __future__ import annotations

import pytest

from building import MONDAY, a_facility, a_job, a_policy, a_site
from wattline.control import Standing
from wattline.spec import Fault
from wattline.spec.slo import Slo
from wattline.twin.run import Setting, run
from wattline.twin.workload import Arrival

HOUR = 3600.0
SLOS = [
    {"name": "soon", "indicator": "start_wait_seconds", "objective": "90%", "within": "1min"},
    {"name": "kept", "indicator": "lost_work", "objective": "90%"},
    {"name": "done", "indicator": "completion", "objective": "99%"},
]


def a_setting(*faults: Fault, slos: bool = True, hours: tuple[float, ...] = (4.0, 4.0)) -> Setting:
    """Jobs of a whole node on one node, one after the other; each saves every half hour."""
    arrivals = [
        Arrival(
            at=MONDAY + number,
            request=a_job(f"r{number}/train", gpus=8, checkpoints=True),
            work_seconds=each * HOUR,
            utilisation=0.9,
        )
        for number, each in enumerate(hours)
    ]
    return Setting(
        name="two",
        facility=a_facility(a_site(nodes=1)),
        policy=a_policy(),
        arrivals=lambda: iter(arrivals),
        exact=True,
        faults=faults,
        begins_at=MONDAY,
        slos=tuple(Slo.model_validate(slo) for slo in SLOS) if slos else (),
    )


def standing(setting: Setting, name: str) -> Standing:
    return run(setting).report.slos[name]


def test_a_wait_that_is_too_long_spends_the_budget_and_says_what_ate_it() -> None:
    soon = standing(a_setting(), "soon")
    assert (soon.good, soon.bad, soon.share, soon.is_met) == (1.0, 1.0, 0.5, False)
    assert soon.left == pytest.approx(0.2 - 1.0)
    assert soon.reasons == (("gpus", 1.0),)


def test_jobs_that_the_world_forgets_in_the_step_in_which_they_end_are_counted() -> None:
    done = standing(a_setting(), "done")
    assert (done.good, done.bad) == (2.0, 0.0)


def test_what_an_attempt_did_since_its_last_checkpoint_is_lost_when_it_is_cut() -> None:
    """The breaker trips a quarter of an hour after the sixth checkpoint."""
    dark = Fault.model_validate(
        {"name": "dark", "at": {"after": "195min"}, "lasts": "1h", "supply": "zurich/feed-a", "rating": "0%"}
    )
    report = run(a_setting(dark, hours=(8.0,))).report
    kept = report.slos["kept"]
    assert 0.0 < kept.bad < 8 * 0.5, "less than a half hour of eight GPUs"
    assert kept.reasons[0][0] == "lost"
    assert kept.bad == pytest.approx(report.lost_gpu_hours.restart, rel=0.35)


def test_a_run_without_slos_is_the_same_to_the_last_step() -> None:
    with_them, without = run(a_setting()).report, run(a_setting(slos=False)).report
    assert with_them.digest == without.digest
    assert without.slos == {}
