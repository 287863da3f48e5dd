from __future__ import annotations

import pytest

from wattline.cli.twin_progress import say_glimpse, share_of
from wattline.spec import read_facility, read_policy
from wattline.state import JobRequest
from wattline.twin.run import BEGINS_AT, Glimpse, Setting, run
from wattline.twin.workload import Arrival

DAY = 86_400.0
JULY = BEGINS_AT + 182 * DAY


def test_days_and_shares_count_from_the_day_on_which_a_run_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wattline.twin.run._PROGRESS_STEPS", 1)
    seen: list[Glimpse] = []
    policy = read_policy("default")
    setting = Setting(
        name="made",
        facility=read_facility("lab"),
        policy=policy,
        arrivals=lambda: iter(
            Arrival(
                at=JULY + hour * 3600.0,
                request=JobRequest(job=f"j{hour}/train", run=f"j{hour}", gpus=1),
                work_seconds=60.0,
                utilisation=0.5,
            )
            for hour in range(36)
        ),
        begins_at=JULY,
    )
    run(setting, tell=seen.append)
    assert seen
    assert seen[-1].passed_seconds < 2 * DAY
    assert ", day 1, " in say_glimpse(seen[0], 36)


def test_a_share_is_of_time_or_of_jobs_whichever_is_more() -> None:
    glimpse = Glimpse(passed_seconds=0.25 * DAY, submitted=9, ended=1, waiting=0)
    assert share_of(glimpse, 10, DAY) == pytest.approx(0.25)
    assert share_of(glimpse, 2, DAY) == pytest.approx(0.5)
