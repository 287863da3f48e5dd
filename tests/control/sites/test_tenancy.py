"""What an agent may let run, and until when."""

from __future__ import annotations

import math

import pytest

from wattline.control.sites import Lease, Tenancy, Timing
from wattline.errors import UsageError

TIMING = Timing(lease_seconds=60.0, grace_seconds=15.0, sync_seconds=3.0, supervisor_seconds=30.0)


def a_lease(epoch: int = 1) -> Lease:
    return Lease(epoch=epoch, seconds=60.0, grace_seconds=15.0, sync_seconds=3.0, supervisor_seconds=30.0)


def a_tenancy(*, asked_at: float) -> Tenancy:
    tenancy = Tenancy(TIMING, 7, 0.0)
    number = tenancy.ask(asked_at)
    assert tenancy.is_answer(number)
    tenancy.renew(a_lease())
    return tenancy


def test_a_lease_counts_from_when_it_was_asked_for_not_from_when_the_answer_came() -> None:
    assert a_tenancy(asked_at=100.0).ends_at() == 160.0


def test_only_the_answer_to_the_last_request_counts() -> None:
    tenancy = Tenancy(TIMING, 7, 0.0)
    first, second = tenancy.ask(1.0), tenancy.ask(2.0)
    assert not tenancy.is_answer(first)
    assert tenancy.is_answer(second)
    tenancy.renew(a_lease())
    assert not tenancy.is_answer(second)


@pytest.mark.parametrize(("now", "until"), [(100.0, 130.0), (129.0, 159.0), (131.0, 160.0), (159.0, 160.0)])
def test_who_may_not_go_on_alone_gets_no_more_than_the_lease_has_left(now: float, until: float) -> None:
    tenancy = a_tenancy(asked_at=100.0)
    assert tenancy.may_run_until(now, alone=False) == until
    assert tenancy.may_run_until(now, alone=True) == now + 30.0


def test_without_a_lease_nothing_is_lengthened() -> None:
    assert Tenancy(TIMING, 1, 0.0).may_run_until(5.0, alone=False) == -math.inf


def test_being_cut_off_begins_exactly_after_the_grace() -> None:
    tenancy = a_tenancy(asked_at=100.0)
    assert not tenancy.is_cut_off(115.0)
    assert tenancy.is_cut_off(115.1)


def test_an_agent_that_starts_has_its_grace_too() -> None:
    tenancy = Tenancy(TIMING, 1, 50.0)
    assert not tenancy.is_cut_off(60.0)
    assert tenancy.is_cut_off(66.0)


@pytest.mark.parametrize("drift", [0.0, 0.01, 0.1, 0.3])
def test_the_hub_waits_longer_than_any_agent_within_the_bound_holds_on(drift: float) -> None:
    timing = Timing(drift=drift, fence_seconds=0.0)
    slowest_agent_true_seconds = timing.lease_seconds / (1.0 - drift)
    fastest_hub_true_seconds = timing.surely_over_seconds / (1.0 + drift)
    assert fastest_hub_true_seconds >= slowest_agent_true_seconds - 1e-9


@pytest.mark.parametrize(
    "wrong", [{"grace_seconds": 60.0}, {"sync_seconds": 15.0}, {"drift": 0.5}, {"sync_seconds": 0.0}]
)
def test_times_that_contradict_each_other_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Timing(**wrong)
