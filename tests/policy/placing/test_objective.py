"""Each term of the objective moves the score its way, and only by its weight."""

from __future__ import annotations

import pytest

from building import Hall, a_job, a_policy, a_site, a_world
from wattline.policy.placing.objective import place_score, transfer_score, waiting_score
from wattline.policy.placing.placement import choose_place, score_place
from wattline.spec.policy import Weights
from wattline.state import Place

_ALL = Weights(topology=0.1)


def score(weights: Weights = _ALL, /, **changes: float) -> float:
    terms = {"cost": 10.0, "warmth": 0.5, "left_watts": 1000.0, "leftover_gpus": 1, "switches": 1} | changes
    return place_score(weights, **terms)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("term", "worse"),
    [("cost", 11.0), ("warmth", 0.9), ("left_watts", 10.0), ("leftover_gpus", 5), ("switches", 3)],
)
def test_a_place_that_is_worse_in_one_term_scores_more(term: str, worse: float) -> None:
    assert score(**{term: worse}) > score()


@pytest.mark.parametrize(
    ("weight", "term", "other"),
    [
        ("heat", "warmth", 0.9),
        ("power", "left_watts", 10.0),
        ("fragmentation", "leftover_gpus", 5),
        ("topology", "switches", 3),
    ],
)
def test_a_weight_of_zero_takes_its_term_out(weight: str, term: str, other: float) -> None:
    weights = Weights.model_validate({"topology": 0.1} | {weight: 0.0})
    assert score(weights, **{term: other}) == score(weights)


def test_elsewhere_scores_more_than_home_even_where_moving_is_free() -> None:
    assert transfer_score(Weights(), 0.0) > 0.0


def test_a_place_is_scored_as_the_search_scores_it() -> None:
    cheap, dear = a_site("zurich", usd_per_kwh=0.1), a_site("oslo", usd_per_kwh=0.9)
    hall = a_world(dear, cheap)
    request = a_job(gpus=2)
    taken = choose_place(hall.snapshot(), hall.policy, request).place
    assert taken is not None
    other = Place("oslo", (("oslo/r1-n1", 2),))
    here, there = (scored(hall, place) for place in (taken, other))
    assert here is not None
    assert there is not None
    assert taken.site == "zurich"
    assert here < there


def scored(hall: Hall, place: Place) -> float | None:
    return score_place(hall.snapshot(), hall.policy, a_job(gpus=2), place)


def test_a_place_that_does_not_carry_a_job_has_no_score() -> None:
    hall = a_world(a_site(rack_cap_watts=500.0))
    assert scored(hall, Place("zurich", (("zurich/r1-n1", 2),))) is None


def test_waiting_scores_by_the_gpu_hours_that_are_asked_and_more_than_any_place() -> None:
    hall = a_world(policy=a_policy())
    short, long = (a_job(gpus=2, max_duration_seconds=3600.0 * hours) for hours in (1, 3))
    weights = hall.policy.weights
    assert waiting_score(weights, long) == pytest.approx(3 * waiting_score(weights, short))
    here = scored(hall, Place("zurich", (("zurich/r1-n1", 2),)))
    assert here is not None
    assert waiting_score(weights, short) > here
