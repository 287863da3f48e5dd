from __future__ import annotations

from typing import Any

import msgspec
import pytest

from building import MONDAY, Hall, a_facility, a_job, a_link, a_policy, a_site
from wattline.control import Documents, Objectives, Standing, StepRecord, decode_step, observe
from wattline.control.objectives_memory import Memory
from wattline.policy import decide
from wattline.spec import Policy
from wattline.state import (
    Acknowledged,
    Action,
    ActionKind,
    Asked,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Decision,
    Ending,
    Event,
    GatesJudged,
    JobRequest,
    Measured,
    Place,
    Released,
    RunSubmitted,
    State,
    Ticked,
)
from wattline.twin.replaying import read_rules
from wattline.twin.report import Report
from wattline.twin.run import Setting, metered, run
from wattline.twin.scenario import read_stage, setting_of

HOUR = 3600.0


class Watched(Hall):
    """A hall whose steps are shown to the objectives of its policy."""

    def __init__(self, policy: Policy, **site: Any) -> None:
        super().__init__(a_facility(a_site(**site)), policy, MONDAY)
        self.objectives = Objectives(policy.slos)

    def turn(self, *events: Event, wait: float = 0.0, decision: Decision | None = None) -> Decision:
        self.at += wait
        self.state.fold(events)
        made = decision or decide(self.snapshot(), self.policy)
        self.objectives.note(self.state, StepRecord(events=events, digest="", decision=made))
        self.state.settle(made)
        return made

    def arrive(self, *requests: JobRequest) -> Decision:
        return self.turn(
            *[
                RunSubmitted(at=self.at, run=request.run, pipeline="p", jobs=(request,), project="nlp")
                for request in requests
            ]
        )

    def start(self, job: str, wait: float = 0.0) -> None:
        self.at += wait
        self.turn(AttemptStarted(at=self.at, job=job, attempt=self.job(job).attempt))

    def end(self, job: str, ending: Ending = Ending.SUCCEEDED, wait: float = 0.0) -> None:
        self.at += wait
        self.turn(AttemptEnded(at=self.at, job=job, attempt=self.job(job).attempt, ending=ending))

    def save(self, job: str, wait: float) -> None:
        self.at += wait
        attempt = self.job(job).attempt
        self.turn(CheckpointSaved(at=self.at, job=job, attempt=attempt, step=1, site="zurich"))

    def standing(self, wait: float = 0.0) -> Standing:
        self.at += wait
        (standing,) = self.objectives.standings(self.state, self.at)
        return standing


def a_slo(indicator: str, objective: str = "50%", **more: object) -> Policy:
    return a_policy(slos=[{"name": "s", "indicator": indicator, "objective": objective, **more}])


def counts(standing: Standing) -> tuple[float, float]:
    return round(standing.good, 6), round(standing.bad, 6)


@pytest.mark.parametrize(("waited", "expected"), [(720.0, (1, 0)), (721.0, (0, 1))])
def test_a_start_is_good_up_to_the_very_second(waited: float, expected: tuple[int, int]) -> None:
    hall = Watched(a_slo("start_wait_seconds", within="12min"))
    hall.arrive(a_job())
    hall.start("r1/train", wait=waited)
    assert counts(hall.standing()) == expected


def test_a_job_that_still_waits_is_late_as_soon_as_it_is_and_only_once() -> None:
    hall = Watched(a_slo("start_wait_seconds", within="12min"), nodes=1)
    hall.arrive(a_job("r1/train", gpus=8))
    hall.start("r1/train")
    hall.arrive(a_job("r2/train", gpus=8))
    assert counts(hall.standing(wait=719)) == (1, 0)
    standing = hall.standing(wait=2)
    assert counts(standing) == (1, 1)
    assert standing.reasons == (("gpus", 1.0),), "what it waited for"
    hall.end("r1/train", wait=HOUR)
    hall.start("r2/train")
    assert counts(hall.standing()) == (1, 1)


def test_what_is_behind_one_that_does_not_fit_waits_for_the_same() -> None:
    hall = Watched(a_slo("start_wait_seconds", within="1min"), nodes=1)
    hall.arrive(a_job("r1/train", gpus=8))
    hall.start("r1/train")
    hall.arrive(a_job("r2/train", gpus=8), a_job("r3/train", gpus=8))
    assert hall.standing(wait=HOUR).reasons == (("gpus", 2.0),)


def test_a_later_phase_waits_from_when_the_one_before_it_has_ended() -> None:
    hall = Watched(a_slo("start_wait_seconds", within="1min"))
    first, second = a_job("r1/prepare"), a_job("r1/train", after=("r1/prepare",))
    hall.turn(RunSubmitted(at=hall.at, run="r1", pipeline="p", jobs=(first, second)))
    hall.start("r1/prepare", wait=10)
    hall.end("r1/prepare", wait=HOUR)
    hall.start("r1/train", wait=59)
    assert counts(hall.standing()) == (2, 0)


@pytest.mark.parametrize("want", ["pause", "cancel"])
def test_who_is_told_to_wait_or_gives_up_does_not_count(want: str) -> None:
    hall = Watched(a_slo("start_wait_seconds", within="1min"), nodes=1)
    hall.arrive(a_job("r1/train", gpus=8))
    hall.start("r1/train")
    hall.arrive(a_job("r2/train", gpus=8))
    hall.turn(Asked(at=hall.at, job="r2/train", want=want, actor="ada"))
    assert counts(hall.standing(wait=HOUR)) == (1, 0)


def test_a_refused_job_and_what_comes_after_it_never_waited() -> None:
    hall = Watched(a_slo("start_wait_seconds", within="1min"), nodes=1)
    jobs = (a_job("r1/prepare", gpus=80), a_job("r1/train", after=("r1/prepare",)))
    hall.turn(RunSubmitted(at=hall.at, run="r1", pipeline="p", jobs=jobs))
    assert counts(hall.standing(wait=HOUR)) == (0, 0)
    assert hall.standing().share is None
    assert hall.standing().is_met is None


@pytest.mark.parametrize(
    ("condition", "expected"), [("power_headroom > 60%", (1, 0)), ("power_headroom > 40%", (2, 0))]
)
def test_conditions_are_those_of_the_moment_when_the_wait_began(
    condition: str, expected: tuple[int, int]
) -> None:
    """Eight GPUs take half of the feed: the second job finds 50 % of it free, whatever itself takes then."""
    policy = a_slo("start_wait_seconds", within="1h", **{"while": condition})
    hall = Watched(policy, feeds_watts=(6400.0,))
    hall.arrive(a_job("r1/train", gpus=8))
    hall.start("r1/train")
    hall.arrive(a_job("r2/train", gpus=8))
    hall.start("r2/train")
    assert counts(hall.standing()) == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [({"project": "nlp"}, 1), ({"project": "vision"}, 0), ({"class": "hot"}, 0), ({}, 1)],
)
def test_only_what_an_slo_speaks_of_counts(filters: dict[str, str], expected: int) -> None:
    hall = Watched(a_slo("start_wait_seconds", within="1h", **filters))
    hall.arrive(a_job("r1/train", project="nlp"))
    hall.start("r1/train")
    assert hall.standing().good == expected


@pytest.mark.parametrize(("waited", "expected"), [(60.0, (1, 0)), (61.0, (0, 1))])
def test_a_resume_is_held_against_the_interval_of_its_checkpoints(
    waited: float, expected: tuple[int, int]
) -> None:
    hall = Watched(a_slo("resume_seconds", within="checkpoint-interval"))
    hall.arrive(a_job(checkpoints=True))
    hall.start("r1/train")
    hall.save("r1/train", wait=100)
    hall.save("r1/train", wait=60)
    hall.end("r1/train", Ending.LOST, wait=10)
    hall.start("r1/train", wait=waited)
    assert counts(hall.standing()) == expected


@pytest.mark.parametrize(("to", "expected"), [("zurich", (0, 0)), ("oslo", (1, 0))])
def test_a_resume_where_it_was_before_crosses_no_sites(to: str, expected: tuple[int, int]) -> None:
    policy = a_slo("resume_seconds", within="1h", across_sites=True, **{"while": "link_headroom > 50%"})
    hall = Watched(policy)
    sites = (a_site("zurich"), a_site("oslo"))
    hall.state = State(a_facility(*sites, links=[a_link(("zurich", "oslo"))]))
    hall.arrive(a_job())
    hall.start("r1/train")
    hall.end("r1/train", Ending.LOST)
    job = hall.job()
    if job.place is None or job.place.site != to:
        place = Place(to, ((f"{to}/r1-n1", 1),))
        begin = Action(id="m", kind=ActionKind.MIGRATE, job="r1/train", attempt=job.attempt, place=place)
        hall.turn(Ticked(at=hall.at), decision=Decision(at=hall.at, actions=(begin,)))
    hall.start("r1/train", wait=60)
    assert counts(hall.standing()) == expected


def test_completion_counts_what_ended_and_says_how() -> None:
    hall = Watched(a_slo("completion"))
    hall.arrive(a_job("r1/train"), a_job("r2/train", restart_max=0), a_job("r3/train"))
    for name in ("r1", "r2", "r3"):
        hall.start(f"{name}/train")
    hall.end("r1/train")
    hall.end("r2/train", Ending.FAILED)
    hall.turn(Asked(at=hall.at, job="r3/train", want="cancel", actor="ada"))
    hall.end("r3/train", Ending.STOPPED)
    assert counts(hall.standing()) == (1, 1)
    assert hall.standing().reasons == (("failed", 1.0),)


def test_work_since_the_last_checkpoint_is_lost_with_its_attempt() -> None:
    hall = Watched(a_slo("lost_work", "90%"))
    hall.arrive(a_job(gpus=4, checkpoints=True))
    hall.start("r1/train")
    hall.save("r1/train", wait=HOUR)
    hall.end("r1/train", Ending.LOST, wait=HOUR / 4)
    assert counts(hall.standing()) == (4.0, 1.0)
    assert hall.standing().reasons == (("lost", 1.0),)
    hall.start("r1/train")
    hall.end("r1/train", wait=HOUR)
    assert counts(hall.standing()) == (8.0, 1.0)


def test_gpu_hours_under_a_cap_are_throttled_ones() -> None:
    hall = Watched(a_slo("throttled"))
    hall.arrive(a_job(gpus=2))
    hall.start("r1/train")
    hall.at += HOUR
    cap = Action(id="c", kind=ActionKind.CAP_POWER, job="r1/train", attempt=1, fraction=0.5)
    hall.turn(Ticked(at=hall.at), decision=Decision(at=hall.at, actions=(cap,)))
    hall.turn(Acknowledged(at=hall.at, action="c"))
    hall.end("r1/train", wait=HOUR / 2)
    assert counts(hall.standing()) == (2.0, 1.0)


def test_a_cap_is_violated_for_as_long_as_the_meter_says_so() -> None:
    hall = Watched(a_slo("cap_violations", "99%"), rack_cap_watts=1000.0, telemetry="emulated")
    for watts in (900.0, 1001.0, 900.0, 900.0):
        hall.turn(Measured(at=hall.at, readings=(("zurich/r1", "rack_watts", watts),)))
        hall.at += 60
    standing = hall.standing()
    assert counts(standing) == (round(2 / 60, 6), round(1 / 60, 6))
    assert standing.reasons[0][0] == "power.rack zurich/r1"


def test_a_gap_in_the_journal_counts_for_five_minutes_at_most() -> None:
    hall = Watched(a_slo("cap_violations"), rack_cap_watts=1000.0, telemetry="emulated")
    hall.turn(Measured(at=hall.at, readings=(("zurich/r1", "rack_watts", 10.0),)))
    hall.turn(Ticked(at=hall.at), wait=10 * HOUR)
    assert counts(hall.standing()) == (round(300 / HOUR, 6), 0)


def test_releases_are_timed_from_the_gates_and_what_is_taken_back_from_its_release() -> None:
    slos = [
        {"name": "up", "indicator": "promotion_seconds", "objective": "90%", "within": "1h"},
        {"name": "back", "indicator": "rollback_seconds", "objective": "90%", "within": "10min"},
    ]
    hall = Watched(a_policy(slos=slos))
    for number, run_name in enumerate(("r1", "r2"), start=1):
        hall.turn(GatesJudged(at=hall.at, run=run_name, passed=True))
        hall.at += 1800 * number + 1
        hall.turn(
            Released(at=hall.at, name="m", channel="staging", run=run_name, manifest="x", number=number)
        )
    back = Released(
        at=hall.at + 600, name="m", channel="staging", run="r1", manifest="x", number=1, rolled_back=True
    )
    hall.turn(back, wait=600)
    up, down = hall.objectives.standings(hall.state, hall.at)
    assert counts(up) == (1, 1)
    assert counts(down) == (1, 0)


def test_a_late_or_repeated_word_counts_once() -> None:
    hall = Watched(a_slo("completion"))
    hall.arrive(a_job())
    hall.start("r1/train")
    ended = AttemptEnded(at=hall.at, job="r1/train", attempt=1, ending=Ending.SUCCEEDED)
    hall.turn(ended)
    hall.turn(ended)
    hall.turn(AttemptEnded(at=hall.at + 5, job="r1/train", attempt=0, ending=Ending.FAILED))
    assert counts(hall.standing()) == (1, 0)


Steps = list[tuple[int, StepRecord]]
SLOS = [
    {"name": "soon", "indicator": "start_wait_seconds", "objective": "95%", "within": "12min"},
    {
        "name": "soon-with-room",
        "indicator": "start_wait_seconds",
        "objective": "95%",
        "within": "12min",
        "while": "gpus_free > 50%",
    },
    {"name": "full-speed", "indicator": "throttled", "objective": "90%"},
    {"name": "caps", "indicator": "cap_violations", "objective": "99.9%"},
    {"name": "ends-well", "indicator": "completion", "objective": "90%"},
    {"name": "kept", "indicator": "lost_work", "objective": "90%"},
]


def played(scenario: str) -> tuple[Setting, Report, Steps]:
    """A scenario in the twin, and every step of it as its journal has them."""
    setting = setting_of(read_stage(scenario), read_rules("default"))
    steps: Steps = []
    outcome = run(setting, keep=lambda data: steps.append((len(steps) + 1, decode_step(data))))
    return setting, outcome.report, steps


def standings_of(setting: Setting, *parts: Steps) -> dict[str, Standing]:
    """By name, after some steps and then some more, from what was written down in between."""
    slos = a_policy(slos=SLOS).slos
    objectives, state = Objectives(slos), State(metered(setting.facility))
    documents = Documents(facility=lambda _: setting.facility, policy=lambda _: setting.policy)
    for part in parts:
        memory = msgspec.json.decode(msgspec.json.encode(objectives.memory()), type=Memory)
        objectives = Objectives(slos, memory)
        assert observe(state, part, documents, objectives.note) is state
    ends_at = parts[-1][-1][1].decision.at
    return {standing.name: standing for standing in objectives.standings(state, ends_at)}


def test_a_run_of_the_twin_has_its_slos_by_the_same_code() -> None:
    """The grid asks for less for three hours: the ladder caps jobs, and that eats a budget."""
    setting, report, steps = played("grid-event")
    found = standings_of(setting, steps)
    assert found["soon"].good + found["soon"].bad == report.jobs.submitted
    assert found["soon-with-room"].good + found["soon-with-room"].bad < found["soon"].good
    assert found["full-speed"].is_met is False
    assert found["full-speed"].left < 0
    assert found["full-speed"].alert == "ticket", "it does not burn any more, but too much is gone"
    assert found["full-speed"].reasons[0][0] == "power.supply"
    assert found["caps"].good > 100
    assert standings_of(setting, steps[: len(steps) // 3], steps[len(steps) // 3 :]) == found


def test_all_that_the_twin_ended_is_counted_also_what_it_forgets_in_the_same_step() -> None:
    setting, report, steps = played("site-loss")
    found = standings_of(setting, steps)
    ended = [event for _, record in steps for event in record.events if isinstance(event, AttemptEnded)]
    assert found["ends-well"].good == report.jobs.completed > 0
    held = found["kept"].good + found["kept"].bad
    assert held == pytest.approx(sum(event.usage.gpu_hours for event in ended))
