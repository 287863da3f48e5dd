"""Energy: every joule belongs to a job or to nobody, and costs what its hour costs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.truth.sites import HOUR, Weather, a_fault, a_plant, a_site, a_truth, fill, run_until
from wattline.facility import CoolingKind
from wattline.physics import predict_gpu_watts, predict_other_watts


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 50.0),
            st.integers(0, 11),
            st.integers(1, 8),
            st.floats(0.0, 1.1),
            st.floats(0.2, 1.0),
        ),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from(list(CoolingKind)),
    st.integers(0, 2**31),
)
def test_the_balance_closes_over_any_sequence_of_changes(
    moves: list[tuple[float, int, int, float, float]], kind: CoolingKind, seed: int
) -> None:
    plant = a_plant(a_site(kind, racks=3, nodes=4, rack_cap_watts=25_000.0, feeds_watts=(90_000.0, 90_000.0)))
    faults = [
        a_fault("100s", lasts="120s", loop="loop", flow="0%"),
        a_fault("300s", lasts="50s", supply="feed-a", rating="0%"),
    ]
    truth = a_truth(plant, exact=False, seed=seed, faults=faults, surroundings={"zurich": Weather()})
    at, ended_joules = 0.0, 0.0
    running: dict[int, str] = {}
    for number, (later, node, gpus, utilisation, cap) in enumerate(moves):
        at += later
        run_until(truth, at)
        if node in running and number % 3:
            truth.change(running[node], at, utilisation=utilisation, cap_fraction=cap)
        elif node in running:
            ended_joules += truth.unload(running.pop(node), at)
        else:
            running[node] = f"job-{number}"
            truth.load(running[node], [(node, gpus)], utilisation, cap, at)
    run_until(truth, at + 5000.0)
    tally = truth.tally.sites["zurich"]
    assert tally.it_joules > 0.0
    assert tally.residual < 1e-6
    ended_joules += sum(truth.unload(key, at + 5000.0) for key in running.values())
    assert ended_joules == pytest.approx(truth.tally.sites["zurich"].job_joules)
    assert tally.compute_joules < tally.it_joules < tally.facility_joules


def test_a_job_pays_for_its_gpus_and_their_part_of_the_box() -> None:
    plant = a_plant()
    truth, node = a_truth(plant), plant.spots[0].node
    assert node.device is not None
    truth.load("job", [(0, 2)], 0.5, 1.0, 0.0)
    watts = 2 * predict_gpu_watts(node.device, 0.5, 1.0) + predict_other_watts(node.other_watts, 0.5) / 4
    assert truth.unload("job", 100.0) == pytest.approx(100.0 * watts)


def test_draw_returns_exactly_to_idle_when_all_jobs_are_gone() -> None:
    plant = a_plant(a_site(racks=3))
    truth = a_truth(plant, exact=False)
    idle = [truth.resource_watts(number) for number in range(2)]
    for key in fill(truth, plant, utilisation=0.777):
        truth.change(key, 1.0, cap_fraction=0.61)
    for spot in plant.spots:
        truth.unload(spot.node.name, 2.0)
    assert [truth.resource_watts(number) for number in range(2)] == idle


def test_without_surroundings_a_site_costs_what_it_states() -> None:
    plant = a_plant()
    truth = a_truth(plant)
    truth.advance(10 * HOUR)
    tally = truth.tally.sites["zurich"]
    kwh = tally.it_joules / 3.6e6
    assert tally.pue == pytest.approx(1.25)
    assert tally.usd == pytest.approx(kwh * 1.25 * 0.1)
    assert tally.kg_co2e == pytest.approx(kwh * 1.25 * 0.1)
    assert tally.tue > tally.pue
    assert tally.peak_watts == pytest.approx(tally.it_joules / (10 * HOUR))


def test_with_surroundings_each_hour_costs_its_own() -> None:
    truth = a_truth(a_plant(), surroundings={"zurich": Weather()})
    run_until(truth, 1.5 * HOUR)
    tally = truth.tally.sites["zurich"]
    hour_kwh = tally.it_joules / 3.6e6 / 1.5
    assert tally.facility_joules / 3.6e6 == pytest.approx(hour_kwh * (1.1 + 0.5 * 1.2))
    assert tally.usd == pytest.approx(hour_kwh * (1.1 * 0.1 + 0.5 * 1.2 * 0.3))
    assert tally.kg_co2e == pytest.approx(hour_kwh * (1.1 * 0.1 + 0.5 * 1.2 * 0.05))


def test_asking_for_the_tally_changes_nothing() -> None:
    asked, silent = (a_truth(a_plant(), surroundings={"zurich": Weather()}) for _ in range(2))
    for truth in (asked, silent):
        truth.load("job", [(0, 8)], 0.9, 0.6, 0.0)
    for at in (100.0, 4000.0, 7200.0, 9000.0):
        run_until(asked, at)
        assert asked.tally == asked.tally
    run_until(silent, 9000.0)
    assert asked.tally.sites["zurich"].usd == pytest.approx(silent.tally.sites["zurich"].usd)
