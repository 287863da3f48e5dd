"""The benchmark of ETAs in short: jobs that wait are told, and told better than by the last hundred waits."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

from bench.eta import Score, Told, judge, judge_all

from shared_data import shared_data


def told(waited: float, p50: float, p90: float) -> Told:
    return Told(at=0.0, eta=(p50, p90), peer=(p50, p50), waited=waited)


def test_what_starts_by_its_times_is_counted_and_a_late_start_costs_nine_times_an_early_one() -> None:
    score = Score.of([(10.0, (10.0, 30.0)), (40.0, (10.0, 30.0))])
    assert (score.jobs, score.by_p50, score.by_p90) == (2, 0.5, 0.5)
    assert math.isclose(score.loss_seconds, (0.1 * 20.0 + 0.9 * 10.0) / 2)
    assert math.isclose(score.over, (3.0 + 0.75) / 2)


def test_a_bar_is_met_or_missed_by_what_came() -> None:
    right = [told(float(waited), 50.0, 90.0) for waited in range(1, 101)]
    assert all(row.met for row in judge(4.5, right))
    assert all(row.met for row in judge_all(right))
    wide = [told(float(waited), 50.0, 900.0) for waited in range(1, 101)]
    assert [row.met for row in judge(4.5, wide)] == [False, True, False, False, True]


def test_the_short_form_tells_every_job_that_waits_and_loses_less_than_its_peer() -> None:
    shared_data("jobs/philly.csv.gz")
    command = [sys.executable, "-m", "bench.eta", "--short"]
    root = Path(__file__).parents[2]

    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, timeout=600)

    rows = {line[:68].strip().partition(": ")[2]: line[68:] for line in done.stdout.splitlines()}
    by_p90 = re.search(r"([\d.]+) %\s+\w+$", rows["started by p90"])
    assert by_p90 is not None
    assert float(by_p90[1]) >= 80.0
    assert rows["loss at p90 by the peer's"].endswith("met")
