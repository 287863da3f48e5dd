"""What is true follows from what was said and decided, whatever order and noise it came in."""

from __future__ import annotations

import msgspec
import pytest

from building import (
    MONDAY,
    Hall,
    a_facility,
    a_job,
    a_policy,
    a_site,
    a_world,
    adopted,
    assert_ledger_is_true,
    kinds,
)
from wattline.errors import RefusedError
from wattline.state import (
    Acknowledged,
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Ending,
    Event,
    Expected,
    Forecasted,
    JobState,
    Measured,
    Progressed,
    RunSubmitted,
    SnapshotUnusableError,
    State,
    Ticked,
    Usage,
    dump_state,
    load_state,
)


def running() -> Hall:
    hall = a_world(a_site(nodes=1))
    hall.run(a_job(gpus=8, cpus=4, max_duration_seconds=3600.0))
    return hall


def test_a_job_goes_from_waiting_to_succeeded_and_leaves_nothing_behind() -> None:
    hall = a_world()
    hall.submit(a_job(gpus=8))
    assert hall.job().state is JobState.WAITING
    hall.decide()
    assert hall.job().state is JobState.STARTING
    assert_ledger_is_true(hall.state)
    hall.started("r1/train")
    assert hall.job().state is JobState.RUNNING
    hall.ended("r1/train")
    assert hall.job().state is JobState.SUCCEEDED
    assert not any(hall.state.ledger.claimed)
    assert not hall.state.flights


def test_a_claim_is_held_from_the_decision_on_not_from_the_start() -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job(gpus=8))
    hall.decide()
    assert hall.state.ledger.gpus_free == [0]


@pytest.mark.parametrize(
    "late",
    [
        AttemptStarted(at=MONDAY + 9, job="r1/train", attempt=7),
        AttemptEnded(at=MONDAY + 9, job="r1/train", attempt=0, ending=Ending.FAILED),
        AttemptEnded(at=MONDAY + 9, job="nobody/train", attempt=1, ending=Ending.FAILED),
        Progressed(at=MONDAY + 9, job="r1/train", attempt=0, step=3),
        CheckpointSaved(at=MONDAY + 9, job="r1/train", attempt=2, step=3, site="zurich"),
        Acknowledged(at=MONDAY + 9, action="r1/train#1.start.0"),
        Acknowledged(at=MONDAY + 9, action="nothing"),
        Ticked(at=MONDAY + 9),
    ],
)
def test_what_is_late_or_unknown_changes_nothing(late: Event) -> None:
    hall = running()
    before = hall.state.digest()
    hall.fold(late)
    assert hall.state.digest() == before


def test_an_end_that_is_told_twice_is_counted_once() -> None:
    hall = running()
    ended = AttemptEnded(
        at=MONDAY + 9, job="r1/train", attempt=1, ending=Ending.LOST, usage=Usage(gpu_hours=2.0)
    )
    hall.fold(ended)
    hall.fold(ended)
    assert hall.job().usage.gpu_hours == 2.0
    assert hall.state.accounts["nlp"].used.gpu_hours == 2.0


def test_a_reading_that_comes_late_does_not_replace_a_newer_one() -> None:
    hall = a_world(a_site(telemetry="emulated"))
    hall.fold(Measured(at=MONDAY + 10, readings=(("zurich/r1", "rack_watts", 500.0),)))
    before = hall.state.digest()
    hall.fold(Measured(at=MONDAY + 9, readings=(("zurich/r1", "rack_watts", 100.0),)))
    assert hall.state.digest() == before
    assert hall.state.ledger.drawn[hall.state.plant.resource_number["zurich/r1"]] == 500.0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_meter_that_says_no_number_says_nothing(value: float | None) -> None:
    hall = a_world(a_site(telemetry="emulated"))
    before = hall.state.digest()
    hall.fold(Measured(at=MONDAY, readings=(("zurich/loop", "flow_fraction", value),)))
    assert hall.state.digest() == before


def test_a_flow_below_nothing_is_none_at_all() -> None:
    hall = a_world(a_site(telemetry="emulated"))
    hall.submit(a_job())
    hall.read("zurich/loop", "flow_fraction", -0.01)
    assert kinds(hall.decide()) == []


def test_a_loss_that_diverged_reads_back_as_it_was_folded() -> None:
    hall, again = running(), running()
    event = Progressed(at=MONDAY + 1, job="r1/train", attempt=1, step=5, loss=float("nan"))
    hall.fold(event)
    again.fold(msgspec.json.decode(msgspec.json.encode(event), type=Progressed))
    assert hall.state.digest() == again.state.digest()


def test_the_digest_does_not_depend_on_how_events_were_batched() -> None:
    events: list[Event] = [
        adopted(MONDAY),
        RunSubmitted(
            at=MONDAY, run="r1", pipeline="p", jobs=(a_job(), a_job("r1/eval", after=("r1/train",)))
        ),
        Measured(
            at=MONDAY + 1,
            readings=(("zurich/r1", "rack_watts", 1.0), ("zurich/r1-n1/gpu0", "gpu_celsius", 40.0)),
        ),
        Ticked(at=MONDAY + 2),
    ]
    at_once, one_by_one = State(a_facility()), State(a_facility())
    at_once.fold(events)
    for event in events:
        one_by_one.fold([event])
    assert at_once.digest() == one_by_one.digest()
    assert dump_state(at_once) == dump_state(one_by_one)


@pytest.mark.parametrize(
    "change",
    [{"step": 9}, {"asked": "pause"}, {"say": "x"}, {"restarts": 1}, {"power_fraction": 0.5}, {"rung": 2}],
)
def test_any_change_in_a_job_changes_the_digest_and_undoing_it_restores_it(change: dict[str, object]) -> None:
    hall = running()
    before, job = hall.state.digest(), hall.job()
    hall.state.put(msgspec.structs.replace(job, **change))
    assert hall.state.digest() != before
    hall.state.put(job)
    assert hall.state.digest() == before


def test_phases_wait_for_those_before_them_and_give_up_with_them() -> None:
    hall = a_world()
    hall.submit(a_job("r1/a"), a_job("r1/b", after=("r1/a",)), a_job("r1/c", after=("r1/b",)))
    assert [hall.job(f"r1/{name}").state for name in "abc"] == ["waiting", "blocked", "blocked"]
    hall.obey(hall.decide())
    hall.ended("r1/a")
    assert hall.job("r1/b").state is JobState.WAITING
    hall.asked("r1/b", "cancel")
    assert hall.job("r1/c").state is JobState.CANCELLED
    assert hall.job("r1/c").say == "b cancelled"


def test_a_job_after_something_that_never_was_gives_up_at_once() -> None:
    hall = a_world()
    hall.submit(a_job("r1/b", after=("r0/gone",)))
    assert hall.job("r1/b").state is JobState.CANCELLED


def test_a_run_that_is_submitted_twice_is_one_run() -> None:
    hall = running()
    before = hall.state.digest()
    hall.submit(a_job(gpus=1))
    hall.fold(RunSubmitted(at=hall.at, run="other", pipeline="p", jobs=(a_job(gpus=1),)))
    assert hall.state.digest() == before


def test_a_raised_cap_is_held_when_it_is_asked_for_and_given_back_when_it_fails() -> None:
    ladder = {"under_pressure": [{"cap_power": "50%"}], "thresholds": {"clear_for": "0s", "settle": "0s"}}
    hall = a_world(a_site(nodes=1, telemetry="emulated"), policy=a_policy(**ladder))
    hall.read("zurich/r1", "rack_watts", 0.0)
    hall.read("zurich/feed-a", "supply_watts", 0.0)
    hall.read("zurich/loop", "loop_heat_watts", 0.0)
    hall.run(a_job(gpus=8))
    rack = hall.state.plant.resource_number["zurich/r1"]
    hall.wait(1)
    hall.read("zurich/r1", "rack_watts", 2e6)
    hall.obey(hall.decide())
    assert hall.state.ledger.claimed[rack] == 1600
    hall.wait(1)
    hall.read("zurich/r1", "rack_watts", 0.0)
    hall.decide()
    lift = hall.decide().actions[0]
    assert (lift.kind, lift.fraction) == (ActionKind.CAP_POWER, 1.0)
    assert hall.state.ledger.claimed[rack] == 3200
    assert_ledger_is_true(hall.state)
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert loaded.ledger.claimed == hall.state.ledger.claimed
    hall.failed(lift)
    assert hall.state.ledger.claimed[rack] == 1600
    assert_ledger_is_true(hall.state)


def test_a_failed_cap_does_not_bring_back_a_job_that_is_being_paused() -> None:
    hall = a_world(
        a_site(nodes=1, telemetry="emulated"), policy=a_policy(under_pressure=[{"cap_power": "50%"}])
    )
    for subject, quantity in (("r1", "rack_watts"), ("feed-a", "supply_watts"), ("loop", "loop_heat_watts")):
        hall.read(f"zurich/{subject}", quantity, 0.0)
    hall.run(a_job(gpus=8, checkpoints=True))
    hall.wait(1)
    hall.read("zurich/r1", "rack_watts", 2e6)
    cap = hall.decide().actions[0]
    hall.asked("r1/train", "pause")
    assert kinds(hall.decide()) == [("pause", "r1/train")]
    hall.failed(cap)
    assert hall.job().state is JobState.PAUSING


def test_an_answer_to_a_beginning_or_a_pause_restarts_its_clock_unless_it_is_late() -> None:
    hall = a_world()
    hall.submit(a_job(checkpoints=True))
    (start,) = hall.decide().actions
    hall.fold(Acknowledged(at=MONDAY - 1, action=start.id))
    assert hall.state.flights[start.id].issued_at == MONDAY
    hall.wait(60)
    assert hall.decide().actions == (start,)
    hall.wait(9)
    hall.fold(Acknowledged(at=hall.at, action=start.id))
    assert (hall.state.flights[start.id].issued_at, hall.state.flights[start.id].tries) == (hall.at, 1)
    hall.started("r1/train")
    hall.asked("r1/train", "pause")
    (pause,) = hall.decide().actions
    hall.wait(9)
    hall.fold(Acknowledged(at=hall.at, action=pause.id))
    assert hall.state.flights[pause.id].issued_at == hall.at


def test_only_the_end_of_its_attempt_answers_a_stop() -> None:
    hall = running()
    hall.asked("r1/train", "cancel")
    (stop,) = hall.decide().actions
    before = hall.state.digest()
    hall.fold(Acknowledged(at=MONDAY + 9, action=stop.id))
    assert hall.state.digest() == before


def test_a_state_cannot_move_to_another_facility_while_jobs_hold_claims() -> None:
    hall = running()
    with pytest.raises(RefusedError, match="1 jobs still hold claims"):
        hall.state.rebase(a_facility(a_site("oslo")))
    hall.ended("r1/train")
    hall.state.rebase(a_facility(a_site("oslo")))
    assert list(hall.state.plant.sites) == ["oslo"]


def test_a_dump_that_was_altered_is_not_loaded() -> None:
    hall = running()
    data = dump_state(hall.state)
    with pytest.raises(SnapshotUnusableError, match="its digest is"):
        load_state(hall.state.plant.facility, data.replace(b'"owner":"nlp"', b'"owner":"eve"'))
    with pytest.raises(SnapshotUnusableError, match="cannot be read"):
        load_state(hall.state.plant.facility, b"{}")


def test_a_dump_of_another_version_is_not_loaded() -> None:
    hall = running()
    data = dump_state(hall.state).replace(b'"version":4', b'"version":5')
    with pytest.raises(SnapshotUnusableError, match="is of version 5, this code reads 4"):
        load_state(hall.state.plant.facility, data)


def a_forecast(at: float, *jobs: str) -> Forecasted:
    starts = tuple(Expected(job, at + 60.0, None) for job in jobs)
    return Forecasted(at=at, starts=starts, samples=8, horizon_seconds=3600.0)


def test_the_last_forecast_is_kept_hashed_and_dumped() -> None:
    hall = a_world()
    hall.submit(a_job())
    before = hall.state.digest()
    later, earlier = a_forecast(hall.at, "r1/train"), a_forecast(hall.at - 9.0, "r1/train")
    hall.fold(later, earlier)
    assert hall.state.forecast == later
    assert hall.state.digest() != before
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert loaded.forecast == later
    assert hall.snapshot().expected("r1/train") == later.starts[0]


def test_a_forecast_survives_the_journal_as_it_was() -> None:
    forecast = a_forecast(MONDAY, "r1/train", "r2/train")
    decode = msgspec.json.Decoder(Event).decode
    assert decode(msgspec.json.encode(forecast)) == forecast


def test_a_forecast_says_nothing_of_a_job_that_has_run_since_or_came_later() -> None:
    hall = a_world()
    hall.submit(a_job(), a_job("r2/train"))
    hall.fold(a_forecast(hall.at, "r1/train"))
    assert hall.snapshot().expected("r2/train") is None
    hall.wait(1)
    hall.obey(hall.decide())
    hall.ended("r1/train", Ending.LOST)
    assert hall.job().state is JobState.WAITING
    assert hall.snapshot().expected("r1/train") is None


def test_under_other_documents_the_forecast_is_void() -> None:
    hall = a_world()
    hall.fold(a_forecast(hall.at, "r1/train"), adopted(hall.at))
    assert hall.state.forecast is None
