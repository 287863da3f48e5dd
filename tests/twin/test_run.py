from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from building import MONDAY, a_facility, a_job, a_policy, a_site
from wattline.policy import decide as decide_by_policy
from wattline.spec.policy import Policy
from wattline.state import Decision, Job, Snapshot
from wattline.twin.replaying import read_rules
from wattline.twin.run import Setting, run
from wattline.twin.scenario import read_stage, setting_of
from wattline.twin.workload import Arrival

SETTLED, SEEN = 100, 200  # turns: by then all that is made once is there, and enough has happened since


@pytest.fixture
def _kept_garbage() -> Iterator[None]:
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield
    gc.set_debug(0)
    gc.garbage.clear()


@pytest.mark.usefixtures("_kept_garbage")
@pytest.mark.parametrize("policy", ["default", "power-blind"])
def test_turns_leave_nothing_for_the_collector_which_is_off_meanwhile(policy: str) -> None:
    setting = setting_of(read_stage("pump-trip"), read_rules(policy))
    enabled: list[bool] = []
    left: list[str] = []

    def decide(snapshot: Snapshot, rules: Policy) -> Decision:
        enabled.append(gc.isenabled())
        if len(enabled) in (SETTLED, SEEN):
            gc.collect()
            left[:] = [type(each).__name__ for each in gc.garbage]
            gc.garbage.clear()
        return setting.decide(snapshot, rules)

    run(replace(setting, decide=decide))

    assert len(enabled) > SEEN
    assert left == []
    assert not any(enabled)
    assert gc.isenabled()


def _jobs_kept() -> int:
    return sum(type(each) is Job for each in gc.get_objects())


@pytest.mark.parametrize("limit_seconds", [None, 3600.0])
def test_what_is_kept_does_not_grow_with_the_jobs_that_have_ended(limit_seconds: float | None) -> None:
    jobs, every_seconds = 4000, 10.0
    held: list[int] = []
    gc.collect()
    of_others = _jobs_kept()  # by tests that ran before this one

    def arrivals() -> Iterator[Arrival]:
        for number in range(jobs):
            request = a_job(f"r{number}/train", gpus=1, max_duration_seconds=limit_seconds)
            at = MONDAY + number * every_seconds
            yield Arrival(at=at, request=request, work_seconds=2.5 * every_seconds, utilisation=0.5)

    def decide(snapshot: Snapshot, rules: Policy) -> Decision:
        held.append(0)
        if len(held) == jobs - 1:
            held[-1] = _jobs_kept() - of_others
        return decide_by_policy(snapshot, rules)

    facility = a_facility(a_site(nodes=1, gpus=8))
    run(
        Setting(
            name="many",
            facility=facility,
            policy=a_policy(),
            arrivals=arrivals,
            begins_at=MONDAY,
            decide=decide,
        )
    )

    assert 0 < max(held) < jobs // 2  # some are kept until it is worth going through them
