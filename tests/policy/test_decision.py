"""One decision is a pure function of what is true, and people's word comes first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from building import (
    Hall,
    a_device,
    a_facility,
    a_job,
    a_ladder,
    a_link,
    a_policy,
    a_site,
    a_world,
    adopted,
    assert_ledger_is_true,
    kinds,
)
from wattline.control import encode_decision
from wattline.policy import decide, ladder_of
from wattline.spec import Priority
from wattline.state import ENDED, Acknowledged, Ending, JobState, Snapshot, dump_state, load_state


def busy() -> Hall:
    """Running, waiting, paused and refused jobs at two sites."""
    hall = a_world(
        a_site("zurich", racks=2, rack_cap_watts=4000.0),
        a_site("oslo", nodes=1, usd_per_kwh=0.02),
        links=[a_link(("zurich", "oslo"))],
        policy=a_policy(teams={"vision": {"quota": {"gpu_hours": 3}}}, under_pressure=[{"cap_power": "50%"}]),
    )
    hall.run(*(a_job(f"r{n}/train", gpus=4, checkpoints=True) for n in range(5)))
    hall.asked("r1/train", "pause")
    hall.obey(hall.decide())
    for n in range(5, 12):
        hall.submit(
            a_job(
                f"r{n}/train", gpus=1 + n % 4, project=("nlp", "vision")[n % 2], max_duration_seconds=3600.0
            )
        )
    hall.submit(a_job("r12/train", gpus=999))
    return hall


def test_the_same_snapshot_gives_the_same_bytes_and_is_left_as_it_was() -> None:
    hall = busy()
    before, digest = dump_state(hall.state), hall.state.digest()
    first, second = (encode_decision(decide(hall.snapshot(), hall.policy)) for _ in range(2))
    assert first == second
    assert b'"kind":"start"' in first
    assert (dump_state(hall.state), hall.state.digest()) == (before, digest)


def test_the_decision_does_not_depend_on_the_process_it_is_made_in() -> None:
    program = (
        "from importlib.util import module_from_spec, spec_from_file_location\n"
        f"spec = spec_from_file_location('told', {str(Path(__file__))!r})\n"
        "told = module_from_spec(spec); spec.loader.exec_module(told)\n"
        "hall = told.busy()\n"
        "print(hall.state.digest(), told.encode_decision(told.decide(hall.snapshot(), hall.policy)).decode())"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    hall = busy()
    here = encode_decision(decide(hall.snapshot(), hall.policy)).decode()
    assert answers == {f"{hall.state.digest()} {here}\n"}


def test_a_snapshot_of_a_state_that_has_changed_is_not_decided_on() -> None:
    hall = a_world()
    snapshot = hall.snapshot()
    hall.submit(a_job())
    with pytest.raises(RuntimeError, match="has changed since"):
        decide(snapshot, hall.policy)


def test_what_is_known_not_to_fit_is_not_tried_again_until_something_changes() -> None:
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("r0/train", gpus=8))
    hall.submit(a_job("r1/train", gpus=8))
    assert [*hall.decide().stuck] == ["r1/train"]
    assert hall.decide().stuck == ()
    scratch = load_state(hall.state.plant.facility, dump_state(hall.state))
    scratch.stuck.clear()
    assert decide(Snapshot(scratch, hall.at), hall.policy).actions == ()
    hall.ended("r0/train")
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_another_policy_is_asked_again_about_what_did_not_fit() -> None:

    hall = a_world(a_site(rack_cap_watts=500.0), policy=a_policy(thresholds={"power_margin": "50%"}))
    hall.run(a_job("r0/train", peak_watts=200.0))
    hall.submit(a_job("r1/train", peak_watts=200.0))
    assert kinds(hall.decide()) == []
    hall.policy = a_policy()
    hall.fold(adopted(hall.at, policy="other"))
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_what_is_larger_than_the_facility_is_refused_at_once_and_never_queued() -> None:
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("r0/train", gpus=8))
    hall.submit(a_job("r1/train", gpus=9), a_job("r2/train", gpus=8))
    assert kinds(hall.decide()) == [("refuse", "r1/train")]
    assert hall.job("r1/train").state is JobState.REFUSED
    assert "short by 1 GPU" in hall.job("r1/train").say
    assert hall.job("r1/train").say.endswith("ask for less")


def test_gpus_of_a_job_that_is_leaving_are_not_given_away_before_it_has_left() -> None:
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("r0/train", gpus=8, checkpoints=True))
    hall.submit(a_job("r1/train", gpus=8))
    hall.asked("r0/train", "pause")
    assert kinds(hall.decide()) == [("pause", "r0/train")]
    assert_ledger_is_true(hall.state)
    hall.ended("r0/train", Ending.PAUSED)
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_the_cheaper_site_is_preferred() -> None:
    hall = a_world(a_site("zurich", usd_per_kwh=0.2), a_site("oslo", usd_per_kwh=0.05))
    hall.run(a_job())
    assert str(hall.job().place) == "oslo/r1-n1×1"


def test_the_tightest_fit_is_preferred_so_that_whole_nodes_stay_free() -> None:
    hall = a_world(a_site(nodes=2, racks=2))
    hall.run(a_job("r0/train", gpus=6))
    hall.run(a_job("r1/train", gpus=2))
    assert sorted(hall.state.ledger.gpus_free) == [0, 8, 8, 8]


def test_a_job_comes_back_where_its_checkpoint_is() -> None:
    hall = a_world(a_site("zurich"), a_site("oslo"), links=[a_link(("zurich", "oslo"))])
    hall.run(a_job(checkpoints=True))
    hall.saved("r1/train", site="oslo")
    hall.ended("r1/train", Ending.LOST)
    action = hall.decide().actions[0]
    assert action.place is not None
    assert (action.place.site, action.from_site) == ("oslo", "oslo")


def test_the_urgent_go_first_whatever_their_shape() -> None:
    hall = a_world(a_site(nodes=1, gpus=4), policy=a_policy(classes={"build": {"priority": 5}}))
    hall.submit(
        a_job("r1/train", gpus=2, priority=Priority.HIGH),
        a_job("r2/train", gpus=2, priority=Priority.LOW),
        a_job("r3/train", gpus=1, priority=Priority.NORMAL),
        a_job("r4/train", gpus=1, scheduling_class="build", priority=Priority.LOW),
    )
    assert [job for _, job in kinds(hall.decide())] == ["r4/train", "r1/train", "r3/train"]


def test_among_equals_the_one_that_came_first_goes_first() -> None:
    hall = a_world(a_site(nodes=1, gpus=1))
    for name in ("r9/train", "r1/train"):
        hall.submit(a_job(name))
        hall.wait(1)
    assert kinds(hall.decide()) == [("start", "r9/train")]


@pytest.mark.parametrize(("restarts", "backoff_seconds"), [(1, 10.0), (2, 20.0), (3, 40.0)])
def test_a_job_that_failed_waits_longer_each_time(restarts: int, backoff_seconds: float) -> None:
    hall = a_world()
    hall.run(a_job(restart_max=5))
    for n in range(restarts):
        hall.ended("r1/train", Ending.FAILED)
        if n < restarts - 1:
            hall.wait(1000)
            hall.obey(hall.decide())
    decision = hall.decide()
    assert kinds(decision) == []
    assert decision.revisit_at == hall.at + backoff_seconds
    hall.wait(backoff_seconds)
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_no_backoff_is_longer_than_ten_minutes() -> None:
    hall = a_world()
    hall.run(a_job(restart_max=5000))
    hall.state.put(msgspec.structs.replace(hall.job(), restarts=4000))
    hall.ended("r1/train", Ending.FAILED)
    assert hall.decide().revisit_at == hall.at + 600


@pytest.mark.parametrize(("losses", "backoff_seconds"), [(1, 0.0), (2, 10.0), (3, 20.0), (12, 600.0)])
def test_a_job_that_is_lost_again_and_again_waits_longer_each_time(
    losses: int, backoff_seconds: float
) -> None:
    hall = a_world()
    hall.run(a_job())
    for n in range(losses):
        hall.ended("r1/train", Ending.LOST)
        if n < losses - 1:
            hall.wait(1000)
            hall.obey(hall.decide())
    if backoff_seconds:
        decision = hall.decide()
        assert (kinds(decision), decision.revisit_at) == ([], hall.at + backoff_seconds)
        hall.wait(backoff_seconds)
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_a_job_that_ran_for_long_before_it_was_lost_starts_again_at_once() -> None:
    hall = a_world()
    hall.run(a_job())
    for _ in range(4):
        hall.wait(3600)
        hall.ended("r1/train", Ending.LOST)
        decision = hall.decide()
        assert kinds(decision) == [("start", "r1/train")]
        hall.obey(decision)


def test_a_job_fails_for_good_after_as_many_restarts_as_it_has() -> None:
    hall = a_world()
    hall.run(a_job(restart_max=1))
    hall.ended("r1/train", Ending.FAILED)
    hall.wait(10)
    hall.obey(hall.decide())
    hall.ended("r1/train", Ending.FAILED)
    assert hall.job().state is JobState.FAILED


def test_what_was_lost_through_no_fault_of_its_own_starts_again_at_once() -> None:
    hall = a_world()
    hall.run(a_job(restart_max=0))
    hall.ended("r1/train", Ending.LOST)
    assert kinds(hall.decide()) == [("start", "r1/train")]
    assert hall.job().attempt == 2


@pytest.mark.parametrize(
    ("checkpoints", "want", "kind", "ending", "after"),
    [
        (True, "pause", "pause", Ending.PAUSED, JobState.PAUSED),
        (False, "pause", "stop", Ending.STOPPED, JobState.PAUSED),
        (True, "cancel", "stop", Ending.STOPPED, JobState.CANCELLED),
    ],
)
def test_peoples_word_wins(checkpoints: bool, want: str, kind: str, ending: Ending, after: JobState) -> None:
    hall = a_world()
    hall.run(a_job(checkpoints=checkpoints))
    hall.asked("r1/train", want)
    assert kinds(hall.decide()) == [(kind, "r1/train")]
    assert kinds(hall.decide()) == []
    hall.ended("r1/train", ending)
    assert hall.job().state is after
    hall.wait(10_000)
    assert kinds(hall.decide()) == []


def test_a_paused_job_comes_back_when_people_let_it() -> None:
    hall = a_world(policy=a_policy(under_pressure=[{"cap_power": "50%"}, {"stop": True}]))
    hall.run(a_job(checkpoints=True))
    hall.asked("r1/train", "pause")
    hall.obey(hall.decide())
    hall.asked("r1/train", "resume")
    assert kinds(hall.decide()) == [("resume", "r1/train")]


@pytest.mark.parametrize("blocked", [False, True])
def test_a_job_paused_before_it_ran_goes_back_in_line(blocked: bool) -> None:
    hall = a_world()
    hall.submit(a_job("r1/train"), a_job("r1/eval", after=("r1/train",)))
    name = "r1/eval" if blocked else "r1/train"
    hall.asked(name, "pause")
    if blocked:
        hall.obey(hall.decide())
        hall.ended("r1/train")
    assert kinds(hall.decide()) == []
    assert hall.job(name).state is JobState.PAUSED
    hall.asked(name, "resume")
    assert kinds(hall.decide()) == [("start", name)]


def test_a_word_nobody_knows_is_no_order() -> None:
    hall = a_world()
    hall.run(a_job())
    hall.asked("r1/train", "dance")
    assert kinds(hall.decide()) == []


def test_an_action_nobody_answers_is_asked_again_and_in_the_end_stopped_for() -> None:
    hall = a_world()
    hall.submit(a_job())
    seen = []
    for _ in range(8):
        decision = hall.decide()
        seen += kinds(decision)
        assert decision.due_at == hall.at + 60
        hall.wait(60)
    assert Counter(kind for kind, _ in seen) == {"start": 3, "stop": 5}
    assert len({action.id for decision in hall.decisions for action in decision.actions}) == 2
    hall.ended("r1/train", Ending.NOT_STARTED)
    assert not hall.state.flights


def test_a_start_that_somebody_is_at_is_not_taken_for_silence() -> None:
    hall = a_world()
    hall.submit(a_job())
    (start,) = hall.decide().actions
    for _ in range(10):
        hall.wait(59)
        hall.fold(Acknowledged(at=hall.at, action=start.id))
        decision = hall.decide()
        assert (kinds(decision), decision.revisit_at) == ([], hall.at + 60)
    assert hall.job().state is JobState.STARTING


def test_a_job_that_was_stopped_for_its_silence_goes_on_elsewhere() -> None:
    hall = a_world()
    hall.submit(a_job(restart_max=0))
    for _ in range(3):
        hall.decide()
        hall.wait(60)
    assert kinds(hall.decide()) == [("stop", "r1/train")]
    hall.ended("r1/train", Ending.STOPPED)
    assert hall.job().state is JobState.WAITING
    assert hall.job().past[-1].ending is Ending.LOST
    assert hall.job().say == "start was not answered 3 times"
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_a_stop_that_failed_is_not_tried_again_at_once() -> None:
    hall = a_world()
    hall.submit(a_job())
    for _ in range(3):
        hall.decide()
        hall.wait(60)
    hall.failed(hall.decide().actions[0])
    decision = hall.decide()
    assert (kinds(decision), decision.revisit_at) == ([], hall.at + 60)
    hall.wait(60)
    assert kinds(hall.decide()) == [("stop", "r1/train")]


def test_a_pause_that_failed_is_asked_for_again_after_a_while() -> None:
    hall = a_world()
    hall.run(a_job(checkpoints=True))
    hall.wait(100)
    hall.asked("r1/train", "pause")
    hall.failed(hall.decide().actions[0])
    for seconds in (0, 1, 28):
        hall.wait(seconds)
        decision = hall.decide()
        assert kinds(decision) == []
    assert decision.revisit_at == hall.at + 1
    hall.wait(1)
    assert kinds(hall.decide()) == [("pause", "r1/train")]


def test_a_stop_that_failed_leaves_the_job_as_it_was() -> None:
    hall = a_world()
    hall.submit(a_job())
    for _ in range(3):
        hall.decide()
        hall.wait(60)
    stop = hall.decide().actions[0]
    hall.failed(stop)
    assert hall.job().state is JobState.STARTING


def test_one_more_job_does_not_look_at_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    site = a_site(racks=250, nodes=8, device=a_device())
    hall = Hall(a_facility(site), a_policy(), 0.0)
    asked: Counter[str] = Counter()
    real = Snapshot.gpus_free

    def counted(snapshot: Snapshot, node: int) -> int:
        asked["gpus_free"] += 1
        return real(snapshot, node)

    hall.run(a_job("r0/train"))
    monkeypatch.setattr(Snapshot, "gpus_free", counted)
    hall.run(a_job("r1/train", gpus=8))
    assert asked["gpus_free"] < 100


def test_a_job_that_finds_everything_taken_does_not_look_at_every_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hall = a_world(a_site(racks=100, nodes=4, gpus=1))
    hall.run(*(a_job(f"r{n}/train") for n in range(400)))
    hall.submit(a_job("more/train"))
    asked: Counter[str] = Counter()
    real = Snapshot.gpus_free

    def counted(snapshot: Snapshot, node: int) -> int:
        asked["gpus_free"] += 1
        return real(snapshot, node)

    monkeypatch.setattr(Snapshot, "gpus_free", counted)
    assert [*hall.decide().stuck] == ["more/train"]
    assert asked["gpus_free"] < 40


@pytest.mark.parametrize("seconds", [-3e5, -100.0, 3e7], ids=["far back", "back", "a year on"])
def test_a_clock_that_jumps_neither_stops_what_runs_nor_starts_it_twice(seconds: float) -> None:
    policy = a_policy(teams={"nlp": {}}, sharing={"patience": "1h"}, power_sharing={"by": "caps"})
    hall = a_world(a_site(nodes=2), policy=policy)
    hall.run(a_job("r1/train", gpus=8))
    hall.submit(a_job("r2/train", gpus=16))
    hall.decide()
    hall.wait(seconds)
    hall.submit(a_job("r3/train", gpus=1))
    decision = hall.decide()
    assert [job for kind, job in kinds(decision) if kind != "start"] == []
    assert hall.job("r1/train").state is JobState.RUNNING
    assert decision.revisit_at is None or decision.revisit_at > decision.at
    hall.obey(decision)
    hall.wait(-seconds)
    assert kinds(hall.decide()) == []
    assert_ledger_is_true(hall.state)


def test_every_job_ends_up_somewhere() -> None:
    hall = busy()
    for _ in range(40):
        hall.obey(hall.decide())
        for job_id in list(hall.state.holding):
            hall.ended(job_id)
        hall.wait(3600 * 24)
    assert hall.job("r1/train").state is JobState.PAUSED
    assert all(job.state in ENDED for job in hall.state.jobs.values() if job.id != "r1/train")


def test_ladders_are_the_owners_then_the_classs_then_the_policys() -> None:

    policy = a_policy(
        classes={"x": {"under_pressure": [{"cap_power": "60%"}]}}, under_pressure=[{"stop": True}]
    )
    hall = a_world(policy=policy)
    own = a_ladder({"pause": "1h"})
    hall.submit(
        a_job("a/t", ladder=own), a_job("b/t", scheduling_class="x"), a_job("c/t"), a_job("d/t", ladder=())
    )
    found = [[rung.kind.value for rung in ladder_of(hall.job(f"{name}/t"), policy)] for name in "abcd"]
    assert found == [["pause"], ["cap_power"], ["stop"], []]
