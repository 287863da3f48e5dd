"""A job is looked at when something near it changes, and when something near it falls silent."""

from __future__ import annotations

import pytest

from building import a_device, a_job, a_ladder, a_site, a_world, kinds

LADDER = a_ladder({"cap_power": "50%"})


def test_warm_coolant_presses_where_nobody_reads_the_gpus() -> None:
    """An idle GPU is ten kelvin above its coolant, and throttles at 85 °C."""
    hall = a_world(a_site(device=a_device(idle_watts=100.0)))
    hall.run(a_job(ladder=LADDER))
    assert kinds(hall.decide()) == []
    hall.wait(1)
    hall.read("zurich/loop", "coolant_celsius", 80.0)
    assert kinds(hall.decide()) == [("cap_power", "r1/train")]


def test_a_reading_at_its_oldest_is_looked_at_next_when_it_is_too_old() -> None:
    """Woken exactly then it would still be believed, and be looked at again at the same moment for ever."""
    hall = a_world()
    hall.read("zurich/r1-n1/gpu0", "gpu_celsius", 60.0)
    hall.wait(30)
    decision = hall.decide()
    assert decision.due_at is not None
    assert decision.due_at > hall.at
    hall.at = decision.due_at
    assert hall.decide().due_at is None


def test_a_draw_that_is_no_longer_read_counts_as_the_claim_in_time() -> None:
    """At 100 W the GPU stays cool on a warm loop; at the 400 W it may draw it does not."""
    hall = a_world()
    hall.run(a_job(ladder=LADDER))
    hall.read("zurich/loop", "supply_celsius", 50.0)
    hall.read("zurich/r1-n1/gpu0", "gpu_watts", 100.0)
    hall.wait(5)
    hall.read("zurich/r1-n1/gpu0", "gpu_celsius", 60.0)
    decision = hall.decide()
    assert kinds(decision) == []
    assert decision.due_at == pytest.approx(hall.at + 25)
    hall.wait(26)
    assert kinds(hall.decide()) == [("cap_power", "r1/train")]
