"""With a cloud region fewer deadlines are missed, and every job still ends once."""

from __future__ import annotations

from bench.cloud_burst import measure


def test_a_region_keeps_deadlines_that_the_hall_alone_misses() -> None:
    alone = measure(0, 6.0, with_cloud=False)
    helped = measure(0, 6.0, with_cloud=True)
    assert alone.jobs == alone.completed == helped.completed
    assert helped.missed < alone.missed
    assert helped.wait_minutes < alone.wait_minutes
    assert (alone.reclaims, alone.egress_usd) == (0, 0.0)
    assert helped.egress_usd > 0.0
