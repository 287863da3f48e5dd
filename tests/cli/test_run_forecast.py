"""While a pipeline runs, the loop looks ahead, and what it saw is in the journal like anything else."""

from __future__ import annotations

from cli.running import Desk, assert_nothing_is_left
from wattline.state import ActionKind, Forecasted


def test_a_phase_that_waits_for_another_is_forecast_by_that_ones_progress(desk: Desk) -> None:
    # Long enough that a forecast that took half a second on a busy machine is followed by another.
    desk.training(steps=100, seconds=0.2)
    ran = desk.run()
    assert ran.code == 0, ran.err
    records = desk.steps()
    forecasts = [event for record in records for event in record.events if isinstance(event, Forecasted)]
    began_at = {
        action.job.partition("/")[2]: record.decision.at
        for record in records
        for action in record.decision.actions
        if action.kind is ActionKind.START
    }
    told = [
        expected.p50_at
        for forecast in forecasts
        if forecast.at > began_at["train"]
        for expected in forecast.starts
        if expected.job.endswith("/evaluate")
    ]
    assert told
    assert all(at is not None and at >= began_at["train"] for at in told)
    assert_nothing_is_left(desk)
