"""A site is cut off for longer than its lease: real processes in network namespaces. `make soak` does it at
fifty random moments: `python -m bench.wan_cut`."""

from __future__ import annotations

import pytest
from bench.wan_cut import INTERVAL_STEPS, cut_once

pytestmark = [pytest.mark.needs("ip", "root"), pytest.mark.xdist_group("namespaces")]


def test_a_job_that_may_not_go_on_alone_goes_on_elsewhere_from_the_newest_copy() -> None:
    outcome = cut_once("stop", 1.0)
    assert outcome.is_right
    assert outcome.ran_twice_seconds == 0.0
    assert outcome.attempts == 2
    assert outcome.lost_steps <= INTERVAL_STEPS


def test_a_job_that_goes_on_alone_does_and_its_result_is_told_when_the_way_is_open_again() -> None:
    outcome = cut_once("continue", 0.5)
    assert outcome.is_right
    assert (outcome.attempts, outcome.lost_steps, outcome.ran_twice_seconds) == (1, 0, 0.0)
