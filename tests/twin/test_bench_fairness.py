"""A team that floods the fleet is hardly noticed by the others, where jobs make way."""

from __future__ import annotations

from bench.fairness import policies, waits

_HOURS = 8.0


def test_others_wait_no_longer_when_one_team_floods() -> None:
    by_name = policies()
    makes_way = by_name["fair share, makes way"]
    usual = waits(makes_way, 0, _HOURS, flooded=False)
    flood = waits(makes_way, 0, _HOURS, flooded=True)
    for team, before in usual.p95_seconds.items():
        assert flood.p95_seconds[team] <= before + 120.0, team  # the bar, 60 s, is for whole days
    first_come = waits(by_name["first come, first served"], 0, _HOURS, flooded=True)
    assert min(first_come.p95_seconds.values()) > 10 * max(flood.p95_seconds.values())
