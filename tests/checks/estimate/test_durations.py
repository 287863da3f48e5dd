"""How long a phase will take, by what earlier runs of it took."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import MONDAY, a_job
from wattline.checks.estimate import Lasting, Record, combine, planned_steps, predict_lasting
from wattline.checks.estimate.fitting import student, weighted_median
from wattline.twin.experience import Experience, group_of

seconds = st.floats(0.01, 1e7)


def a_record(taken: float, *, number: int = 0, steps: int | None = None, gpus: int = 1) -> Record:
    ended_at = MONDAY + number
    return Record(
        phase="train", submitted_at=ended_at - taken, ended_at=ended_at, seconds=taken, gpus=gpus, steps=steps
    )


def records(*taken: float, steps: int | None = None) -> list[Record]:
    return [a_record(one, number=number, steps=steps) for number, one in enumerate(taken)]


LATER = MONDAY + 1e9


@given(st.lists(st.tuples(seconds, st.integers(1, 10**6) | st.none(), st.integers(1, 64)), min_size=1))
def test_nine_in_ten_are_never_below_half(taken: list[tuple[float, int | None, int]]) -> None:
    known = [a_record(one, number=n, steps=steps, gpus=gpus) for n, (one, steps, gpus) in enumerate(taken)]
    lasting = predict_lasting(a_job(gpus=4), known, at=LATER, steps=500)
    assert lasting.p50_seconds is not None
    assert lasting.p90_seconds is not None
    assert 0.0 < lasting.p50_seconds <= lasting.p90_seconds
    assert math.isfinite(lasting.p90_seconds)


@given(seconds, st.integers(1, 40))
def test_more_of_the_same_runs_narrow_it(taken: float, runs: int) -> None:
    few, more = (
        predict_lasting(a_job(), records(*[taken] * count), at=LATER).p90_seconds
        for count in (runs, runs + 1)
    )
    assert few is not None
    assert more is not None
    assert taken < more < few


def test_one_run_alone_may_be_half_of_what_comes() -> None:
    lasting = predict_lasting(a_job(), records(100.0), at=LATER)
    assert lasting.p50_seconds == pytest.approx(100.0)
    assert lasting.p90_seconds == pytest.approx(193.0, abs=5.0)
    assert lasting.source == "1 recorded run"


@given(st.lists(seconds, min_size=1, max_size=20), st.lists(seconds, min_size=1, max_size=20))
def test_what_has_not_ended_yet_is_not_known(past: list[float], future: list[float]) -> None:
    known = records(*past)
    unknown = [a_record(one, number=1000 + number) for number, one in enumerate(future)]
    at = MONDAY + 100.0
    assert predict_lasting(a_job(), known + unknown, at=at) == predict_lasting(a_job(), known, at=at)


def test_what_comes_once_is_told_apart_from_what_each_step_takes() -> None:
    known = [a_record(30.0 + 0.5 * steps, number=n, steps=steps) for n, steps in enumerate((100, 200, 400))]
    lasting = predict_lasting(a_job(), known, at=LATER, steps=1000)
    assert lasting.p50_seconds == pytest.approx(530.0)
    assert lasting.source == "3 recorded runs, scaled to 1000 steps"


def test_with_steps_of_one_number_only_all_time_is_taken_to_grow_with_them() -> None:
    lasting = predict_lasting(a_job(), records(50.0, 50.0, steps=100), at=LATER, steps=300)
    assert lasting.p50_seconds == pytest.approx(150.0)


def test_further_from_what_was_recorded_is_less_sure() -> None:
    known = [a_record(float(steps), number=n, steps=steps) for n, steps in enumerate((100, 200))]
    widths = []
    for steps in (200, 400, 3200):
        lasting = predict_lasting(a_job(), known, at=LATER, steps=steps)
        assert lasting.p50_seconds is not None
        assert lasting.p90_seconds is not None
        widths.append(lasting.p90_seconds / lasting.p50_seconds)
    assert widths == sorted(widths)
    assert widths[0] < widths[2]


def test_more_gpus_are_faster_but_not_as_many_times() -> None:
    lasting = predict_lasting(a_job(gpus=8), [a_record(800.0, gpus=4)], at=LATER)
    assert lasting.p50_seconds is not None
    assert 400.0 < lasting.p50_seconds < 600.0
    assert lasting.source == "1 recorded run, scaled to 8 GPUs"


def test_runs_with_as_many_gpus_speak_alone_where_there_are_three() -> None:
    other = [a_record(9000.0, gpus=64)]
    same = [a_record(100.0, number=1 + number, gpus=4) for number in range(3)]
    lasting = predict_lasting(a_job(gpus=4), other + same, at=LATER)
    assert lasting.p50_seconds == pytest.approx(100.0)


def test_one_disturbed_run_moves_little() -> None:
    lasting = predict_lasting(a_job(), records(100.0, 100.0, 4000.0, 100.0, 100.0), at=LATER)
    assert lasting.p50_seconds == pytest.approx(100.0)


def test_no_run_lasts_longer_than_it_may() -> None:
    lasting = predict_lasting(a_job(max_duration_seconds=120.0), records(100.0), at=LATER)
    assert lasting.p50_seconds == pytest.approx(100.0)
    assert lasting.p90_seconds == 120.0


def test_without_runs_the_longest_that_it_may_take_is_a_bound() -> None:
    lasting = predict_lasting(a_job(max_duration_seconds=600.0), (), at=LATER)
    assert lasting.at_most
    assert lasting.p50_seconds == lasting.p90_seconds == 600.0
    assert "max_duration" in lasting.source


def test_without_that_many_jobs_of_the_project_say_something() -> None:
    experience, group = Experience(), group_of("nlp", 1)
    for number in range(100):
        experience.end(f"j{number}", group, MONDAY + number, 60.0)
    lasting = predict_lasting(a_job(), (), at=LATER, experience=experience)
    assert lasting.p50_seconds == pytest.approx(60.0, rel=0.15)
    assert lasting.source == "jobs of nlp with 1 GPU: no recorded runs"


def test_else_nobody_knows_and_the_reason_is_said() -> None:
    lasting = predict_lasting(a_job(), (), at=LATER, experience=Experience())
    assert lasting.p50_seconds is None
    assert lasting.source == "no recorded runs and no constraints.max_duration"


@pytest.mark.parametrize(
    ("params", "steps"),
    [
        ({"steps": 400}, 400),
        ({"steps": 400, "train_steps": 50}, 50),
        ({"max_steps": 7}, 7),
        ({"steps": "400"}, None),
        ({"steps": True}, None),
        ({"steps": -1}, None),
        ({}, None),
    ],
)
def test_steps_are_read_where_parameters_say_them(params: dict[str, object], steps: int | None) -> None:
    assert planned_steps("train", params) == steps


def test_a_run_takes_the_longest_way_through_its_phases() -> None:
    lastings = {
        "prepare": Lasting(p50_seconds=10.0, p90_seconds=13.0),
        "train": Lasting(p50_seconds=100.0, p90_seconds=104.0),
        "export": Lasting(p50_seconds=50.0, p90_seconds=50.0),
    }
    whole = combine(lastings, {"train": ("prepare",), "export": ("prepare",)}, ("prepare", "train", "export"))
    assert whole.p50_seconds == pytest.approx(110.0)
    assert whole.p90_seconds == pytest.approx(115.0)


def test_a_run_with_an_unknown_phase_is_unknown_and_says_which() -> None:
    lastings = {"train": Lasting(p50_seconds=1.0, p90_seconds=1.0), "test": Lasting(source="nobody knows")}
    whole = combine(lastings, {}, ("train", "test"))
    assert whole.p50_seconds is None
    assert whole.source == "test: nobody knows"


@pytest.mark.parametrize(("freedom", "quantile"), [(2.0, 1.886), (5.0, 1.476), (30.0, 1.310), (1e9, 1.2816)])
def test_students_factor_is_that_of_the_tables(freedom: float, quantile: float) -> None:
    assert student(0.9, freedom) == pytest.approx(quantile, rel=0.025)


@given(st.lists(st.tuples(seconds, st.floats(0.01, 10.0)), min_size=1))
def test_half_of_the_weight_lies_on_either_side_of_the_median(values: list[tuple[float, float]]) -> None:
    middle = weighted_median([value for value, _ in values], [weight for _, weight in values])
    total = sum(weight for _, weight in values)
    assert sum(weight for value, weight in values if value < middle) <= 0.5 * total * (1 + 1e-9)
    assert sum(weight for value, weight in values if value > middle) <= 0.5 * total * (1 + 1e-9)
