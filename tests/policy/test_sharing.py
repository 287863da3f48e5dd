"""Who goes first, who makes way, and how long anybody is overtaken."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from building import Hall, a_job, a_policy, a_site, a_world, assert_ledger_is_true, kinds
from wattline.state import JobState, dump_state, load_state

HOUR = 3600.0
TEAMS = {"nlp": {"weight": 2.0}, "vision": {}, "speech": {}}


def fill(hall: Hall, project: str, count: int, **changes: object) -> None:
    hall.run(*[a_job(f"{project}-{n}/train", project=project, **changes) for n in range(count)])


def test_the_team_that_holds_least_for_its_weight_goes_first() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(teams=TEAMS))
    fill(hall, "vision", 3)
    fill(hall, "nlp", 5)
    hall.submit(a_job("first/train", project="vision"))
    hall.wait(1)
    hall.submit(a_job("second/train", project="nlp"))
    hall.decide()
    hall.ended("nlp-0/train")
    assert kinds(hall.decide()) == [("start", "second/train")]  # 4 by a weight of 2 is less than 3


def test_without_teams_the_one_that_came_first_goes_first() -> None:
    hall = a_world(a_site(nodes=1))
    fill(hall, "vision", 8)
    hall.submit(a_job("first/train", project="vision"))
    hall.wait(1)
    hall.submit(a_job("second/train", project="nlp"))
    hall.decide()
    hall.ended("vision-0/train")
    assert kinds(hall.decide()) == [("start", "first/train")]


def test_what_a_team_held_lately_counts_and_fades() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(teams=TEAMS, sharing={"memory": "day"}))
    fill(hall, "vision", 8)
    hall.wait(24 * HOUR)
    for number in range(8):
        hall.ended(f"vision-{number}/train")
    share = hall.state.account("vision").share
    assert share.gpus == 0
    assert share.lately[0] == pytest.approx(4.0)
    assert share.faded(hall.at + 24 * HOUR)[0] == pytest.approx(2.0)
    assert share.faded(hall.at - HOUR) == share.lately  # a clock that went back


def test_starts_of_one_decision_count_for_the_next_of_it() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(teams={"vision": {}, "speech": {}}))
    hall.submit(*[a_job(f"v{n}/train", project="vision", gpus=2) for n in range(4)])
    hall.wait(1)
    hall.submit(*[a_job(f"s{n}/train", project="speech", gpus=2) for n in range(4)])
    started = [job for _, job in kinds(hall.decide())]
    assert sorted(started) == ["s0/train", "s1/train", "v0/train", "v1/train"]


def test_a_team_below_its_share_is_made_way_for_by_one_above_its_own() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(teams=TEAMS, sharing={"preempt": True}))
    fill(hall, "vision", 8, checkpoints=True)
    hall.wait(HOUR)
    hall.submit(a_job("s/train", project="speech", gpus=2))
    decision = hall.decide()
    assert [kind for kind, _ in kinds(decision)] == ["pause", "pause"]
    assert all(action.because == "makes way for s/train" for action in decision.actions)
    hall.obey(decision)
    left = [action.job for action in decision.actions]
    assert [hall.job(job).state for job in left] == [JobState.WAITING] * 2
    assert kinds(hall.decide()) == [("start", "s/train")]


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [({}, HOUR), ({"checkpoints": True}, 60.0)],
    ids=["without checkpoints", "before its least runtime"],
)
def test_nobody_is_asked_to_make_way(changes: dict[str, object], seconds: float) -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(teams=TEAMS, sharing={"preempt": True}))
    fill(hall, "vision", 8, **changes)
    hall.wait(seconds)
    hall.submit(a_job("s/train", project="speech", gpus=2))
    assert kinds(hall.decide()) == []


def test_a_team_at_its_share_asks_nobody() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(teams=TEAMS, sharing={"preempt": True}))
    fill(hall, "vision", 4, checkpoints=True)
    fill(hall, "speech", 4, checkpoints=True)
    hall.wait(HOUR)
    hall.submit(a_job("s/train", project="speech", gpus=1))
    assert kinds(hall.decide()) == []


def test_a_class_that_preempts_takes_from_those_below_it_what_loses_least() -> None:
    classes = {"serving": {"priority": 10, "preempts": True, "gives_way": False}}
    hall = a_world(a_site(nodes=1), policy=a_policy(classes=classes))
    hall.run(a_job("big/train", gpus=4, checkpoints=True), a_job("small/train", gpus=4, checkpoints=True))
    hall.wait(HOUR)
    hall.submit(a_job("web/serve", gpus=2, scheduling_class="serving"))
    decision = hall.decide()
    assert len(decision.actions) == 1
    hall.obey(decision)
    assert ("start", "web/serve") in kinds(hall.decide())
    hall.obey(hall.decisions[-1])
    hall.wait(HOUR)
    hall.submit(a_job("web2/serve", gpus=8, scheduling_class="serving"))
    assert kinds(hall.decide()) == []  # what serves gives way to nobody


def test_gpus_that_a_class_keeps_free_are_not_taken_by_others() -> None:
    classes = {"serving": {"keeps_free": 3}}
    hall = a_world(a_site(nodes=1), policy=a_policy(classes=classes))
    hall.submit(*[a_job(f"r{n}/train") for n in range(8)])
    assert len(hall.decide().actions) == 5
    verdict = next(verdict for verdict in hall.decisions[-1].verdicts if not verdict.allows)
    assert (verdict.rule, verdict.numbers["short_by_gpus"]) == ("class.kept_free", 1.0)
    hall.submit(a_job("web/serve", gpus=3, scheduling_class="serving"))
    assert kinds(hall.decide()) == [("start", "web/serve")]


def test_a_class_holds_no_more_than_its_most() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(classes={"low-power-experiment": {"max_gpus": 3}}))
    hall.submit(*[a_job(f"r{n}/train") for n in range(5)])
    decision = hall.decide()
    assert len(decision.actions) == 3
    hall.obey(decision)
    hall.ended("r0/train")
    assert len(hall.decide().actions) == 1


def starved(patience: str = "1h", **changes: object) -> Hall:
    """A job of two whole nodes behind small ones that each end when the next comes."""
    hall = a_world(a_site(nodes=2), policy=a_policy(sharing={"patience": patience}))
    hall.run(*[a_job(f"r{n}/train", gpus=4, **changes) for n in range(4)])
    hall.submit(a_job("big/train", gpus=16))
    hall.decide()
    return hall


def churn(hall: Hall, number: int) -> None:
    """One of the small ones ends, and two more of its kind come."""
    running = [
        job for job in hall.state.jobs.values() if job.state is JobState.RUNNING and job.request.gpus == 4
    ]
    if running:
        hall.ended(min(running, key=lambda job: job.started_at or 0.0).id)
    hall.submit(*[a_job(f"more-{number}-{copy}/train", gpus=4) for copy in range(2)])
    hall.obey(hall.decide())


def test_a_huge_job_behind_small_ones_starts_once_it_was_overtaken_for_long_enough() -> None:
    hall = starved()
    for number in range(4):
        hall.wait(600)
        churn(hall, number)
    assert hall.job("big/train").state is JobState.WAITING
    hall.wait(HOUR)
    for number in range(4, 9):
        hall.wait(600)
        churn(hall, number)
    assert hall.job("big/train").state is JobState.RUNNING


@pytest.mark.parametrize("hours", [0.5, 2.0, 6.0])
def test_nobody_is_overtaken_for_longer_than_patience_and_what_runs_then(hours: float) -> None:
    """Small jobs that declare how long they take come without end, two for each that leaves."""
    hall = starved(max_duration_seconds=hours * HOUR)
    came_at, number = hall.at, 0
    while hall.job("big/train").state is JobState.WAITING:
        assert hall.at - came_at <= HOUR + hours * HOUR + 120.0
        hall.wait(60)
        for job in list(hall.state.jobs.values()):
            over = job.state is JobState.RUNNING and hall.at >= (job.started_at or 0.0) + hours * HOUR
            if over:
                hall.ended(job.id)
                number += 1
                more = [f"more-{number}-{copy}/train" for copy in range(2)]
                hall.submit(*[a_job(name, gpus=4, max_duration_seconds=hours * HOUR) for name in more])
        hall.obey(hall.decide())


def test_a_project_that_no_team_names_takes_its_turn_as_a_team_of_weight_one() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(teams={"nlp": {"weight": 1}}))
    hall.run(a_job("n0/train", gpus=4, project="nlp"))
    hall.submit(a_job("n1/train", gpus=4, project="nlp"))
    hall.wait(1)
    hall.submit(a_job("x1/train", gpus=4, project="nobody-knows-it"))
    assert kinds(hall.decide()) == [("start", "x1/train")]


def test_without_patience_nothing_is_kept_for_it() -> None:
    hall = a_world(a_site(nodes=2), policy=a_policy(sharing={"patience": None}))
    hall.run(*[a_job(f"r{n}/train", gpus=4) for n in range(4)])
    hall.submit(a_job("big/train", gpus=16))
    hall.decide()
    for number in range(20):
        hall.wait(1200)
        churn(hall, number)
    assert hall.job("big/train").state is JobState.WAITING


def test_a_reservation_says_when_if_all_who_must_leave_said_when_they_will() -> None:
    hall = starved(max_duration_seconds=5 * HOUR)
    began_at = hall.at
    hall.wait(2 * HOUR)
    hall.decide()
    reservation = hall.state.reservations["big/train"]
    assert reservation.starts_at == began_at + 5 * HOUR
    assert "big/train" not in starved().state.reservations


def test_short_jobs_are_put_into_what_is_kept_and_long_ones_are_not() -> None:
    hall = starved(max_duration_seconds=5 * HOUR)
    hall.wait(2 * HOUR)
    hall.decide()
    hall.ended("r0/train")
    hall.submit(a_job("long/train", gpus=4, max_duration_seconds=4 * HOUR))
    assert kinds(hall.decide()) == []
    hall.submit(a_job("short/train", gpus=4, max_duration_seconds=2 * HOUR))
    assert kinds(hall.decide()) == [("start", "short/train")]


def test_a_short_job_of_a_class_at_its_most_is_not_put_into_what_is_kept() -> None:
    hall = starved(max_duration_seconds=5 * HOUR)
    hall.policy = a_policy(sharing={"patience": "1h"}, classes={"bulk": {"max_gpus": 0}})
    hall.wait(2 * HOUR)
    hall.decide()
    hall.ended("r0/train")
    hall.submit(a_job("short/train", gpus=4, max_duration_seconds=HOUR, scheduling_class="bulk"))
    assert kinds(hall.decide()) == []


def test_a_reservation_whose_node_is_lost_is_made_anew() -> None:
    hall = starved()
    hall.wait(2 * HOUR)
    hall.decide()
    assert "big/train" in hall.state.reservations
    hall.read("zurich/r1-n1", "node_up", 0.0)
    hall.wait(1)
    assert hall.decide().given_up == ("big/train",)
    assert "big/train" not in hall.state.reservations


def test_reservations_survive_a_dump() -> None:
    hall = starved()
    hall.wait(2 * HOUR)
    hall.decide()
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert loaded.reservations == hall.state.reservations
    assert loaded.digest() == hall.state.digest()


moves = st.lists(
    st.tuples(st.sampled_from(["submit", "end", "wait"]), st.integers(0, 5), st.integers(1, 8)), max_size=40
)


@given(moves)
@settings(max_examples=60, deadline=None)
def test_whatever_happens_a_reservation_is_kept_by_its_time(steps: list[tuple[str, int, int]]) -> None:
    policy = a_policy(teams=TEAMS, sharing={"preempt": True, "patience": "10m", "reservations": 2})
    hall = a_world(a_site(nodes=2), policy=policy)
    projects = ["nlp", "vision", "speech"]
    told: dict[str, float] = {}
    for number, (move, choice, gpus) in enumerate(steps):
        if move == "submit":
            hall.submit(
                a_job(
                    f"j{number}/train",
                    project=projects[choice % 3],
                    gpus=gpus * (1 + choice // 3),
                    checkpoints=choice % 2 == 0,
                    max_duration_seconds=gpus * 900.0,
                )
            )
        elif move == "end":
            running = [job.id for job in hall.state.jobs.values() if job.state is JobState.RUNNING]
            if running:
                hall.ended(running[choice % len(running)])
        else:
            hall.wait(gpus * 120.0)
        # Nobody runs for longer than it said.
        for job in list(hall.state.jobs.values()):
            seconds = job.request.max_duration_seconds or 0.0
            if job.state is JobState.RUNNING and hall.at >= (job.started_at or 0.0) + seconds:
                hall.ended(job.id)
        decision = hall.decide()
        hall.obey(decision)
        hall.obey(hall.decide())
        assert_ledger_is_true(hall.state)
        for job_id, reservation in hall.state.reservations.items():
            assert hall.state.jobs[job_id].state is JobState.WAITING
            if reservation.starts_at is not None:
                first = told.setdefault(f"{job_id} {reservation.made_at}", reservation.starts_at)
                assert reservation.starts_at == first
                assert hall.at < reservation.starts_at + policy.thresholds.acknowledge_within + 960.0
        waiting = sorted(key for queue in hall.state.waiting.values() for key in queue)
        for by_project in (False, True):
            heads = hall.state.heads(by_project=by_project)
            assert sorted(key for line in heads.lines.values() for key in line.queue) == waiting
            in_order = [line for group in heads.groups.values() for _, line in group]
            assert {id(line) for line in in_order} == {id(line) for line in heads.lines.values()}
            assert all(line.order[3] == line.queue[0][2] for line in in_order)
            assert all(group == sorted(group) for group in heads.groups.values())
        held = dict.fromkeys(projects, 0)
        for job_id in hall.state.holding:
            request = hall.state.jobs[job_id].request
            held[request.project] += request.gpus
        assert held == {project: hall.state.account(project).share.gpus for project in projects}
