"""Dividing: within every bound, close to the best there is, and off only where that does more."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from wattline.policy.watts.dividing import OFF, Level, Menu, Sharer, divide

GENTLE = Menu((Level(0.5, 100.0, 0.8), Level(0.75, 150.0, 0.95), Level(1.0, 200.0, 1.0)))
STEEP = Menu((Level(0.5, 100.0, 0.3), Level(0.75, 150.0, 0.7), Level(1.0, 200.0, 1.0)))


@st.composite
def menus(draw: st.DrawFn) -> Menu:
    count = draw(st.integers(1, 4))
    watts = sorted(draw(st.lists(st.integers(10, 400), min_size=count, max_size=count, unique=True)))
    speeds = sorted(draw(st.lists(st.integers(1, 100), min_size=count, max_size=count)))
    levels = zip(watts, speeds, strict=True)
    off_watts = draw(st.sampled_from([None, 0.0, -50.0]))
    return Menu(tuple(Level(each[0] / 400, float(each[0]), each[1] / 100) for each in levels), off_watts)


sharers = st.builds(
    Sharer,
    gpus=st.integers(1, 8),
    menu=menus(),
    bounds=st.just(((0, 1.0),)),
    weight=st.sampled_from([1.0, 2.0]),
)


def speed_of(jobs: list[Sharer], levels: tuple[int, ...]) -> float:
    return sum(job.weight * job.gpus * job.menu.speed(at) for job, at in zip(jobs, levels, strict=True))


def watts_of(jobs: list[Sharer], levels: tuple[int, ...], bound: int = 0) -> float:
    shares = [dict(job.bounds).get(bound, 0.0) for job in jobs]
    each = zip(jobs, levels, shares, strict=True)
    return sum(share * job.gpus * job.menu.watts(at) for job, at, share in each)


def ways(job: Sharer) -> list[int]:
    return [*([] if job.menu.off_watts is None else [OFF]), *range(len(job.menu.levels))]


def test_watts_are_taken_from_whoever_loses_least() -> None:
    division = divide([Sharer(1, GENTLE), Sharer(1, STEEP)], [300.0])
    assert division.levels == [0, 2]
    assert division.fits


def test_weight_decides_where_two_would_lose_alike() -> None:
    light, heavy = Sharer(1, GENTLE), Sharer(1, GENTLE, weight=4.0)
    assert divide([light, heavy], [300.0]).levels == [0, 2]
    assert divide([heavy, light], [300.0]).levels == [2, 0]


def test_one_is_left_off_where_all_on_the_cliff_would_do_less() -> None:
    jobs = [Sharer(1, Menu(STEEP.levels, 0.0)) for _ in range(2)]
    division = divide(jobs, [200.0])
    assert sorted(division.levels) == [OFF, 2]
    assert division.speed == 1.0


def test_one_that_does_not_quite_fit_is_squeezed_in_where_that_does_more() -> None:
    jobs = [Sharer(1, Menu(GENTLE.levels, 0.0)) for _ in range(2)]
    assert OFF not in divide(jobs, [210.0]).levels


def test_who_cannot_be_off_takes_its_least_and_what_is_missing_is_told() -> None:
    division = divide([Sharer(1, GENTLE), Sharer(1, GENTLE)], [150.0])
    assert division.levels == [0, 0]
    assert not division.fits
    assert division.left_watts == [-50.0]


def test_without_bounds_everybody_has_all() -> None:
    assert divide([Sharer(4, GENTLE, ()), Sharer(1, STEEP, ())], []).levels == [2, 2]


@given(st.lists(sharers, min_size=1, max_size=4), st.integers(0, 4000))
def test_a_division_keeps_its_bound_and_is_within_a_job_of_the_best(jobs: list[Sharer], watts: int) -> None:
    division = divide(jobs, [float(watts)])
    all_ways = list(product(*(ways(job) for job in jobs)))
    feasible = [levels for levels in all_ways if watts_of(jobs, levels) <= watts]
    assert division.fits == bool(feasible)
    if feasible:
        levels = tuple(division.levels)
        assert watts_of(jobs, levels) <= watts + 1e-3
        best = max(speed_of(jobs, each) for each in feasible)
        worth = max(job.weight * job.gpus for job in jobs)
        assert best - worth <= division.speed <= best + 1e-9
        assert abs(division.speed - speed_of(jobs, levels)) < 1e-9


@given(st.lists(sharers, min_size=2, max_size=4), st.integers(0, 2000), st.integers(0, 4000))
def test_bounds_within_bounds_all_hold(jobs: list[Sharer], inner: int, outer: int) -> None:
    under_both = jobs[0]._replace(bounds=((0, 1.0), (1, 0.5)))
    jobs = [under_both, *[job._replace(bounds=((1, 1.0),)) for job in jobs[1:]]]
    division = divide(jobs, [float(inner), float(outer)])
    if division.fits:
        levels = tuple(division.levels)
        assert watts_of(jobs, levels, 0) <= inner + 1e-3
        assert watts_of(jobs, levels, 1) <= outer + 1e-3


def test_a_bound_that_cannot_bind_changes_nothing_and_of_two_that_carry_the_same_the_tighter_counts() -> None:
    loose, pair = ((0, 1.0), (1, 1.0)), ((0, 1.0), (2, 1.0))
    alone = divide([Sharer(1, GENTLE), Sharer(1, STEEP)], [300.0])
    beside = divide([Sharer(1, GENTLE, loose), Sharer(1, STEEP, loose)], [300.0, 1e6])
    twice = divide([Sharer(1, GENTLE, pair), Sharer(1, STEEP, pair)], [350.0, 0.0, 300.0])
    assert alone.levels == beside.levels == twice.levels
    assert twice.fits
    assert twice.left_watts[0] == twice.left_watts[2] + 50.0
